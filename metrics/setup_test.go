package metrics_test

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/subscriber"
)

// patience limits the time that a test waits before it fails.
const patience = 2 * time.Minute

// source is a subscriber with given counts and shards.
type source struct {
	stats  subscriber.Stats
	topics []string
	shards []subscriber.ShardStatus
}

func (s source) Stats() subscriber.Stats          { return s.stats }
func (s source) Topics() []string                 { return s.topics }
func (s source) Shards() []subscriber.ShardStatus { return s.shards }

// now is the time of all tests.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func collector(s metrics.Subscriber) prometheus.Collector {
	return metrics.NewSubscriberCollector(s, metrics.SubscriberConfig{
		ConsumerGroup: "totals", Now: func() time.Time { return now },
	})
}

// countUp sets the fields of a struct of counts to 1, 2 and so on, and durations to as many
// seconds. It returns the number of fields.
func countUp(t *testing.T, stats any) int {
	t.Helper()
	fields := reflect.ValueOf(stats).Elem()
	for i := range fields.NumField() {
		switch field := fields.Field(i).Addr().Interface().(type) {
		case *uint64:
			*field = uint64(i + 1)
		case *time.Duration:
			*field = time.Duration(i+1) * time.Second
		default:
			require.Fail(t, "neither a count nor a duration: give it a test of its own", fields.Type().Field(i).Name)
		}
	}
	return fields.NumField()
}

// gather returns the values of a collector by the names and labels of their series. Values are
// whole numbers in these tests.
func gather(t require.TestingT, c prometheus.Collector) map[string]int {
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	families, err := registry.Gather()
	require.NoError(t, err)
	series := map[string]int{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			name := family.GetName() + "{" + strings.Join(labels, ",") + "}"
			series[name] = int(m.GetCounter().GetValue() + m.GetGauge().GetValue())
		}
	}
	return series
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// hasEach checks that metrics have the values 1 to n, such as those of countUp.
func hasEach(t *testing.T, n int, c prometheus.Collector) {
	t.Helper()
	values := slices.Collect(maps.Values(gather(t, c)))
	for i := range n {
		assert.Contains(t, values, i+1, "field %d has no metric", i+1)
	}
}
