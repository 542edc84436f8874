package otelmetrics

import (
	"context"
	"fmt"
	"iter"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/millrace-dev/millrace/metrics/internal/series"
)

// ConfigError reports a component that cannot be registered. Field names it, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("otelmetrics: %s %s", e.Field, e.Reason) }

// Register registers an observable instrument for each metric of the components of an App, such as
// millrace.App.Components yields: repositories, subscribers, projections, process managers,
// forwarders, receivers and wake-ups, each with its name. It ignores other components. Call it
// once, after everything was added to the App.
//
// Unregister of the result ends the observation. Errors: [*ConfigError] for a component without a
// name, and for two of one kind and name; those of the meter.
func Register(meter metric.Meter, components iter.Seq2[string, any]) (metric.Registration, error) {
	r := registration{instruments: map[*series.Series]instrument{}}
	known := map[[2]string]bool{}
	for name, value := range components {
		c, ok := series.Of(name, value)
		if !ok {
			continue
		}
		key := [2]string{c.Kind, c.Name}
		switch {
		case c.Label != series.Label{} && name == "":
			return nil, &ConfigError{c.Kind, "has no name; yield it with its consumer group or type"}
		case known[key]:
			return nil, &ConfigError{c.Kind, fmt.Sprintf("%q comes twice; their values could not be told apart", name)}
		}
		known[key] = true
		if err := r.add(meter, c); err != nil {
			return nil, err
		}
	}
	return meter.RegisterCallback(r.observe, r.observables...)
}

type registration struct {
	components  []component
	instruments map[*series.Series]instrument
	observables []metric.Observable
}

type component struct {
	series.Component
	attributes []attribute.KeyValue
}

// instrument observes the values of a series.
type instrument func(metric.Observer, series.Value, metric.ObserveOption)

func (r *registration) add(meter metric.Meter, c series.Component) error {
	var attributes []attribute.KeyValue
	if key := c.Label.OpenTelemetry; key != "" {
		attributes = append(attributes, attribute.String(key, c.Name))
	}
	r.components = append(r.components, component{c, attributes})
	for _, s := range c.Series {
		if r.instruments[s] != nil {
			continue
		}
		i, observables, err := newInstrument(meter, s)
		if err != nil {
			return err
		}
		r.instruments[s], r.observables = i, append(r.observables, observables...)
	}
	return nil
}

func newInstrument(meter metric.Meter, s *series.Series) (instrument, []metric.Observable, error) {
	name, help, unit := s.OpenTelemetry(), metric.WithDescription(s.Help), metric.WithUnit(s.Unit)
	switch s.Kind {
	case series.Counter:
		c, err := meter.Int64ObservableCounter(name, help, unit)
		return func(o metric.Observer, v series.Value, with metric.ObserveOption) {
				o.ObserveInt64(c, int64(v.Value), with)
			},
			[]metric.Observable{c}, err
	case series.UpDown:
		c, err := meter.Int64ObservableUpDownCounter(name, help, unit)
		return func(o metric.Observer, v series.Value, with metric.ObserveOption) {
				o.ObserveInt64(c, int64(v.Value), with)
			},
			[]metric.Observable{c}, err
	case series.Duration: // the API has no observable histogram
		count, err := meter.Int64ObservableCounter(name+".count", help, unit)
		if err != nil {
			return nil, nil, err
		}
		sum, err := meter.Float64ObservableCounter(name+".sum", help, metric.WithUnit("s"))
		return func(o metric.Observer, v series.Value, with metric.ObserveOption) {
			o.ObserveInt64(count, int64(v.Count), with) //nolint:gosec // it is far below the limit
			o.ObserveFloat64(sum, v.Value, with)
		}, []metric.Observable{count, sum}, err
	default:
		g, err := meter.Float64ObservableGauge(name, help, unit)
		return func(o metric.Observer, v series.Value, with metric.ObserveOption) { o.ObserveFloat64(g, v.Value, with) },
			[]metric.Observable{g}, err
	}
}

// observe is the callback of all instruments.
func (r *registration) observe(_ context.Context, o metric.Observer) error {
	for _, c := range r.components {
		c.Collect(func(v series.Value) {
			attributes := make([]attribute.KeyValue, 0, len(c.attributes)+len(v.Labels)+len(v.Of.Fixed))
			attributes = append(attributes, c.attributes...)
			for i, label := range v.Of.Labels {
				attributes = append(attributes, attribute.String(label.OpenTelemetry, v.Labels[i]))
			}
			for _, fixed := range v.Of.Fixed {
				attributes = append(attributes, attribute.String(fixed[0], fixed[1]))
			}
			r.instruments[v.Of](o, v, metric.WithAttributes(attributes...))
		})
	}
	return nil
}
