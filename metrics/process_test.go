package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/process"
)

// processStats is a process manager with given counts.
type processStats process.Stats

func (s processStats) Stats() process.Stats { return process.Stats(s) }

func TestEveryCountOfAProcessManagerIsAMetric(t *testing.T) {
	t.Parallel()
	var s process.Stats
	n := countUp(t, &s)
	values := slices.Sorted(maps.Values(gather(t, metrics.NewProcessCollector(processStats(s), metrics.ProcessConfig{Type: "saga"}))))

	for i := range n {
		assert.Contains(t, values, i+1, "field %d of process.Stats has no metric", i+1)
	}
	assert.Len(t, values, n, "each count has one")
}

func TestCountsOfAProcessManagerHaveTheirNames(t *testing.T) {
	t.Parallel()
	c := metrics.NewProcessCollector(processStats{
		Steps: 1, Ignored: 2, Repeated: 3, Commands: 4, Fired: 5, Failed: 6, Polls: 7,
	}, metrics.ProcessConfig{Type: "saga"})

	assert.Equal(t, map[string]int{
		"millrace_process_steps_total{process_type=saga}":           1,
		"millrace_process_inputs_ignored_total{process_type=saga}":  2,
		"millrace_process_inputs_repeated_total{process_type=saga}": 3,
		"millrace_process_commands_sent_total{process_type=saga}":   4,
		"millrace_process_timeouts_fired_total{process_type=saga}":  5,
		"millrace_process_failures_total{process_type=saga}":        6,
		"millrace_process_polls_total{process_type=saga}":           7,
	}, gather(t, c))
}

type (
	saga   struct{}
	opened struct{}
)

func (opened) EventType() string { return "saga.opened" }
func (opened) Apply(*saga)       {}

// broker refuses all messages.
type broker struct{}

func (broker) Publish(string, ...*message.Message) error { return errors.New("not now") }
func (broker) Close() error                              { return nil }

func TestCommandsThatCannotBeSentCountAsFailures(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: journal.Classic, Shards: 1}))
	require.NoError(t, process.CreateTable(t.Context(), client, ""))
	j := testjournal.Open(t, client, journal.Config{})
	clock := now
	m, err := process.New(j, client, process.Define(aggregate.Define[saga]("saga", opened{}),
		process.On(func(_ Deposited, in process.Input) string { return in.Source.Value }, func(saga, Deposited, process.Input) (process.Step[saga], error) {
			return process.Record(opened{}).Send(struct{}{}), nil
		}).Starts(),
	), process.Config{
		Publisher: broker{}, GeneratePublishTopic: func(cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return "mail", nil },
		Now: func() time.Time { return clock },
	})
	require.NoError(t, err)
	require.Error(t, m.Handle(deposited(t.Context())))
	counts := metrics.NewProcessCollector(m, metrics.ProcessConfig{Type: "saga"})
	assert.Zero(t, gather(t, counts)["millrace_process_failures_total{process_type=saga}"], "the message is nacked, which the subscriber counts")
	for range 3 {
		clock = clock.Add(time.Minute)
		_, err = m.Fire(t.Context())
		require.Error(t, err)
	}
	series := gather(t, counts)
	assert.Equal(t, 3, series["millrace_process_failures_total{process_type=saga}"])
	assert.Equal(t, 3, series["millrace_process_polls_total{process_type=saga}"])
	assert.Equal(t, 1, series["millrace_process_steps_total{process_type=saga}"])
}

func deposited(ctx context.Context) *message.Message {
	msg := message.NewMessageWithContext(ctx, "e1", []byte(`{"Amount":1}`))
	msg.Metadata = message.Metadata{"name": "account.deposited.v1", "aggregate_type": "account", "aggregate_id": "42"}
	return msg
}

// A registry has the metrics of a process manager and of its subscriber.
func ExampleNewProcessCollector() {
	client := dynamotest.Open().Client() // any *dynamodb.Client
	ctx := context.Background()
	if err := journal.Create(ctx, client, journal.Config{Layout: journal.Classic, Shards: 4}); err != nil {
		fmt.Println(err)
		return
	}
	j, err := journal.Open(ctx, client, journal.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	sagas := process.Define(aggregate.Define[saga]("saga", opened{}),
		process.On(func(_ Deposited, in process.Input) string { return in.Source.Value }, func(saga, Deposited, process.Input) (process.Step[saga], error) {
			return process.Record(opened{}), nil
		}).Starts())
	manager, err := process.New(j, client, sagas, process.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	registry.MustRegister(metrics.NewProcessCollector(manager, metrics.ProcessConfig{Type: sagas.Type()}))

	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, family := range families[:2] {
		fmt.Println(family.GetName(), family.GetMetric()[0].GetLabel()[0].GetValue())
	}
	// Output:
	// millrace_process_commands_sent_total saga
	// millrace_process_failures_total saga
}
