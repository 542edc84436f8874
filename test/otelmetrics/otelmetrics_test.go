// Package otelmetrics tests the metrics of OpenTelemetry with its SDK.
package otelmetrics_test

import (
	"cmp"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/metrics/otelmetrics"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/receive"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/wakeup"
)

// of is a component with given counts.
type of[S any] struct{ stats S }

func (o of[S]) Stats() S { return o.stats }

// consumer is a subscriber with given counts and shards.
type consumer struct {
	of[subscriber.Stats]
	shards []subscriber.ShardStatus
}

func (c consumer) Topics() []string                 { return []string{"idle"} }
func (c consumer) Shards() []subscriber.ShardStatus { return c.shards }

// counted returns stats whose fields are 1, 2 and so on.
func counted[S any]() of[S] {
	var stats S
	fields := reflect.ValueOf(&stats).Elem()
	for i := range fields.NumField() {
		if d, ok := fields.Field(i).Addr().Interface().(*time.Duration); ok {
			*d = time.Duration(i+1) * time.Second
		} else {
			fields.Field(i).SetUint(uint64(i + 1))
		}
	}
	return of[S]{stats}
}

// app has a component of each kind, and something without metrics.
type app struct{}

func (app) Components() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		_ = yield("totals", consumer{counted[subscriber.Stats](), []subscriber.ShardStatus{
			{Topic: "account", Shard: 1, Epoch: 3, CaughtUp: true, Behind: 7, Blocked: 2, Parked: 1},
		}}) &&
			yield("totals", counted[projection.Stats]()) &&
			yield("saga", counted[process.Stats]()) &&
			yield("order", counted[repository.Stats]()) &&
			yield("to-kafka", counted[forward.Stats]()) &&
			yield("payments", counted[receive.Stats]()) &&
			yield("wakeups", counted[wakeup.SenderStats]()) &&
			yield("wakeups", counted[wakeup.ReceiverStats]()) &&
			yield("server", struct{}{})
	}
}

// labels are the labels in Prometheus of attributes.
var labels = map[attribute.Key]string{
	"messaging.consumer.group.name": "consumer_group", "messaging.destination.name": "topic", "messaging.destination.partition.id": "shard",
	"millrace.reason": "reason", "millrace.projection.name": "projection", "millrace.process.type": "process_type",
	"millrace.aggregate.type": "aggregate_type",
}

// prometheusName returns the name that an exporter to Prometheus gives to a metric.
func prometheusName(m metricdata.Metrics) string {
	if m.Name == "messaging.client.consumed.messages" {
		return "millrace_subscriber_messages_delivered_total"
	}
	name := strings.ReplaceAll(m.Name, ".", "_")
	if strings.HasPrefix(m.Name, "millrace.repository.commit_duration.") {
		return strings.Replace(name, "commit_duration_", "commit_duration_seconds_", 1)
	}
	if m.Unit == "s" {
		name += "_seconds"
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		if data.IsMonotonic {
			name += "_total"
		}
	case metricdata.Sum[float64]:
		name += "_total"
	}
	return name
}

func seriesName(name string, attributes map[string]string) string {
	var all []string
	for _, label := range slices.Sorted(maps.Keys(attributes)) {
		all = append(all, label+"="+attributes[label])
	}
	return name + "{" + strings.Join(all, ",") + "}"
}

func addPoints[N int64 | float64](series map[string]float64, name string, points []metricdata.DataPoint[N]) {
	for _, p := range points {
		of := map[string]string{}
		for _, a := range p.Attributes.ToSlice() {
			if label := labels[a.Key]; label != "" {
				of[label] = a.Value.AsString()
			}
		}
		series[seriesName(name, of)] = float64(p.Value)
	}
}

// readOpenTelemetry returns the values by the names that they have in Prometheus.
func readOpenTelemetry(t *testing.T, reader metric.Reader) map[string]float64 {
	t.Helper()
	var read metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &read))
	series := map[string]float64{}
	for _, scope := range read.ScopeMetrics {
		for _, m := range scope.Metrics {
			assert.NotEmpty(t, m.Description, m.Name)
			assert.Regexp(t, `^(s|\{[a-z]+\})$`, m.Unit, m.Name)
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				addPoints(series, prometheusName(m), data.DataPoints)
			case metricdata.Sum[float64]:
				addPoints(series, prometheusName(m), data.DataPoints)
			case metricdata.Gauge[float64]:
				addPoints(series, prometheusName(m), data.DataPoints)
			default:
				assert.Fail(t, "another kind", "%s %T", m.Name, data)
			}
		}
	}
	return series
}

func readPrometheus(t *testing.T) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for _, c := range metrics.Collectors(app{}.Components()) {
		require.NoError(t, registry.Register(c))
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	series := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			of := map[string]string{}
			for _, label := range m.GetLabel() {
				of[label.GetName()] = label.GetValue()
			}
			if s := m.GetSummary(); s != nil {
				series[seriesName(family.GetName()+"_sum", of)] = s.GetSampleSum()
				series[seriesName(family.GetName()+"_count", of)] = float64(s.GetSampleCount())
				continue
			}
			series[seriesName(family.GetName(), of)] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return series
}

func TestEachMetricOfPrometheusIsOneOfOpenTelemetry(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	registration, err := otelmetrics.Register(metric.NewMeterProvider(metric.WithReader(reader)).Meter("millrace"), app{}.Components())
	require.NoError(t, err)

	expected := readPrometheus(t)
	assert.Greater(t, len(expected), 60)
	assert.Equal(t, expected, readOpenTelemetry(t, reader))

	require.NoError(t, registration.Unregister())
	assert.Empty(t, readOpenTelemetry(t, reader))
}

func TestDeliveriesHaveTheAttributesThatTheConventionsRequire(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	_, err := otelmetrics.Register(metric.NewMeterProvider(metric.WithReader(reader)).Meter("millrace"), app{}.Components())
	require.NoError(t, err)
	var read metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &read))

	all := read.ScopeMetrics[0].Metrics
	slices.SortFunc(all, func(a, b metricdata.Metrics) int { return cmp.Compare(a.Name, b.Name) })
	require.Equal(t, "messaging.client.consumed.messages", all[0].Name)
	got := all[0].Data.(metricdata.Sum[int64]).DataPoints[0].Attributes
	assert.Equal(t, attribute.NewSet(
		attribute.String("messaging.system", "millrace"), attribute.String("messaging.operation.name", "deliver"),
		attribute.String("messaging.consumer.group.name", "totals"),
	), got)
}

func TestComponentsThatCannotBeToldApartAreRefused(t *testing.T) {
	t.Parallel()
	meter := metric.NewMeterProvider().Meter("millrace")
	orders := counted[repository.Stats]()
	for reason, components := range map[string]iter.Seq2[string, any]{
		"has no name": maps.All(map[string]any{"": orders}),
		"comes twice": func(yield func(string, any) bool) {
			for range 2 {
				if !yield("order", orders) {
					return
				}
			}
		},
	} {
		_, err := otelmetrics.Register(meter, components)

		var refused *otelmetrics.ConfigError
		require.ErrorAs(t, err, &refused)
		assert.ErrorContains(t, err, reason)
	}
}
