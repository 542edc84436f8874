package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/metrics/internal/series"
)

const namespace = "millrace_"

// collector collects the metrics of a component.
type collector struct {
	component series.Component
	descs     map[*series.Series]*prometheus.Desc
}

func newCollector(c series.Component) prometheus.Collector {
	var labels prometheus.Labels
	if c.Label.Prometheus != "" {
		labels = prometheus.Labels{c.Label.Prometheus: c.Name}
	}
	descs := map[*series.Series]*prometheus.Desc{}
	for _, s := range c.Series {
		var variable []string
		for _, label := range s.Labels {
			variable = append(variable, label.Prometheus)
		}
		descs[s] = prometheus.NewDesc(namespace+s.Name, s.Help, variable, labels)
	}
	return &collector{c, descs}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, s := range c.component.Series {
		out <- c.descs[s]
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.component.Collect(func(v series.Value) { out <- metric(c.descs[v.Of], v) })
}

// metric returns an invalid metric, instead of a panic, for an invalid label.
func metric(desc *prometheus.Desc, v series.Value) prometheus.Metric {
	var m prometheus.Metric
	var err error
	switch v.Of.Kind {
	case series.Duration:
		m, err = prometheus.NewConstSummary(desc, v.Count, v.Value, nil, v.Labels...)
	case series.Counter:
		m, err = prometheus.NewConstMetric(desc, prometheus.CounterValue, v.Value, v.Labels...)
	default:
		m, err = prometheus.NewConstMetric(desc, prometheus.GaugeValue, v.Value, v.Labels...)
	}
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return m
}

// invalid returns a collector whose registration fails with a reason.
func invalid(reason string) prometheus.Collector {
	return refused{prometheus.NewInvalidDesc(errors.New(reason))}
}

type refused struct{ desc *prometheus.Desc }

func (r refused) Describe(out chan<- *prometheus.Desc) { out <- r.desc }
func (r refused) Collect(chan<- prometheus.Metric)     {}
