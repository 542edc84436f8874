// Package series lists the metrics of the components of an application, for Prometheus and for
// OpenTelemetry. So each metric is in both.
package series

import (
	"strings"

	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/receive"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/wakeup"
)

// Series is a metric. It has a value for each combination of its labels.
type Series struct {
	// Name is the name in Prometheus after "millrace_". It begins with the kind of the component.
	Name string
	Unit string // in UCUM; of the count, if the metric is a summary
	Help string
	Kind Kind
	// Labels have a value with each value of the series.
	Labels []Label
	// Conventional is the name in OpenTelemetry if the semantic conventions have one, and Fixed are
	// attributes that they require: keys and values.
	Conventional string
	Fixed        [][2]string
}

// Kind says how values change.
type Kind int

// The kinds.
const (
	Counter  Kind = iota // rises
	UpDown               // can be added up
	Gauge                // cannot be added up
	Duration             // a sum of seconds that rises, and the count of what it consists of
)

// OpenTelemetry returns the name of the instrument.
func (s *Series) OpenTelemetry() string {
	if s.Conventional != "" {
		return s.Conventional
	}
	component, name, _ := strings.Cut(s.Name, "_")
	for _, suffix := range []string{"_total", "_seconds"} { // an exporter appends them
		name = strings.TrimSuffix(name, suffix)
	}
	return "millrace." + component + "." + name
}

// Label is a label in Prometheus, and an attribute in OpenTelemetry.
type Label struct{ Prometheus, OpenTelemetry string }

// The labels of all series.
var (
	consumerGroup = Label{"consumer_group", "messaging.consumer.group.name"}
	topic         = Label{"topic", "messaging.destination.name"}
	shard         = Label{"shard", "messaging.destination.partition.id"}
	reason        = Label{"reason", "millrace.reason"}
	projectionOf  = Label{"projection", "millrace.projection.name"}
	processType   = Label{"process_type", "millrace.process.type"}
	aggregateType = Label{"aggregate_type", "millrace.aggregate.type"}
)

// Value is a value of a series.
type Value struct {
	Of     *Series
	Value  float64
	Count  uint64   // of a Duration
	Labels []string // the values of the labels of the series
}

// Component has metrics.
type Component struct {
	// Kind and Name identify the component.
	Kind, Name string
	// Label has the name as its value. It is zero if there is only one component of the kind.
	Label  Label
	Series []*Series
	// Collect passes the present values to its argument.
	Collect func(func(Value))
}

// Of returns the metrics of a component of an App. It returns false if there are none.
func Of(name string, component any) (Component, bool) {
	switch c := component.(type) {
	case Subscriber:
		return OfSubscriber(c, name, nil), true
	case interface{ Stats() projection.Stats }:
		return OfProjection(c.Stats, name), true
	case interface{ Stats() process.Stats }:
		return OfProcess(c.Stats, name), true
	case interface{ Stats() repository.Stats }:
		return OfRepository(c.Stats, name), true
	case interface{ Stats() forward.Stats }:
		return OfForwarder(c.Stats, name), true
	case interface{ Stats() receive.Stats }:
		return OfReceiver(c.Stats, name), true
	case interface{ Stats() wakeup.SenderStats }:
		return OfWakeupSender(c.Stats), true
	case interface{ Stats() wakeup.ReceiverStats }:
		return OfWakeupReceiver(c.Stats), true
	}
	return Component{}, false
}

// entry is a series and how to read it from the stats of a component.
type entry[S any] struct {
	series *Series
	read   func(S) Value // without Of
}

// counter returns the entry of a counter.
func counter[S any](name, unit, help string, read func(S) uint64) entry[S] {
	return entry[S]{&Series{Name: name, Unit: unit, Help: help}, func(s S) Value { return Value{Value: float64(read(s))} }}
}

// gauge returns the entry of a metric of another kind.
func gauge[S any](kind Kind, name, unit, help string, labels []Label, read func(S) float64) entry[S] {
	return entry[S]{&Series{Name: name, Unit: unit, Help: help, Kind: kind, Labels: labels}, func(s S) Value { return Value{Value: read(s)} }}
}

// seriesOf returns the series of entries, each once.
func seriesOf[S any](entries []entry[S]) (all []*Series) {
	for i, e := range entries {
		if i == 0 || entries[i-1].series != e.series {
			all = append(all, e.series)
		}
	}
	return all
}

// collect reads entries. The labels are values for all of them.
func collect[S any](entries []entry[S], stats S, out func(Value), labels ...string) {
	for _, e := range entries {
		v := e.read(stats)
		v.Of = e.series
		if v.Labels == nil {
			v.Labels = labels
		}
		out(v)
	}
}

// of returns a component whose metrics are entries.
func of[S any](kind, name string, label Label, stats func() S, entries []entry[S]) Component {
	return Component{
		Kind: kind, Name: name, Label: label, Series: seriesOf(entries),
		Collect: func(out func(Value)) { collect(entries, stats(), out) },
	}
}
