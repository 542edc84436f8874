package metrics

import "github.com/prometheus/client_golang/prometheus"

const namespace = "millrace"

// count is a counter. It reads its value from the stats of a component.
type count[S any] struct {
	desc *prometheus.Desc
	read func(S) uint64
}

func newCount[S any](subsystem, name, help string, labels prometheus.Labels, read func(S) uint64) count[S] {
	return count[S]{prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, name), help, nil, labels), read}
}

func (c count[S]) of(stats S) prometheus.Metric {
	return metric(c.desc, prometheus.CounterValue, float64(c.read(stats)))
}

// gauge is a gauge of a subscriber.
type gauge[S any] struct {
	desc *prometheus.Desc
	read func(S) float64
}

func newGauge[S any](name, help string, labels prometheus.Labels, variable []string, read func(S) float64) gauge[S] {
	return gauge[S]{prometheus.NewDesc(prometheus.BuildFQName(namespace, "subscriber", name), help, variable, labels), read}
}

func (g gauge[S]) of(status S, labels ...string) prometheus.Metric {
	return metric(g.desc, prometheus.GaugeValue, g.read(status), labels...)
}

// metric returns an invalid metric, instead of a panic, for an invalid label.
func metric(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) prometheus.Metric {
	m, err := prometheus.NewConstMetric(desc, kind, value, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return m
}

func (c count[S]) description() *prometheus.Desc { return c.desc }
func (g gauge[S]) description() *prometheus.Desc { return g.desc }

func describe[D interface{ description() *prometheus.Desc }](out chan<- *prometheus.Desc, series []D) {
	for _, s := range series {
		out <- s.description()
	}
}
