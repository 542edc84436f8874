package metrics_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestEveryFigureOfASubscriberIsAMetric(t *testing.T) {
	t.Parallel()
	var s source
	n := countUp(t, &s.stats)
	values := slices.Sorted(maps.Values(gather(t, collector(s))))

	for i := range n {
		assert.Contains(t, values, i+1, "field %d of subscriber.Stats has no metric", i+1)
	}
	assert.Len(t, values, n, "each figure has one")
}

func TestFiguresHaveTheirNames(t *testing.T) {
	t.Parallel()
	s := source{stats: subscriber.Stats{
		Delivered: 1, Acked: 2, Nacked: 3, Expired: 4, Duplicates: 5, Fetched: 6, Late: 7, Reconciled: 8, Early: 25, Beyond: 20, Filtered: 9, Destroyed: 10,
		Truncated: 11, Failures: 12, Corrupt: 13, Parked: 14, Poisoned: 15, Skipped: 21, Stopped: 22, Deferred: 23, Retried: 24, Claims: 16, Positions: 17, HintReads: 26, Unannounced: 27,
		Lateness: 18 * time.Second, Ahead: 19 * time.Second,
	}}
	assert.Equal(t, map[string]int{
		"millrace_subscriber_messages_delivered_total{consumer_group=totals}":                      1,
		"millrace_subscriber_messages_acked_total{consumer_group=totals}":                          2,
		"millrace_subscriber_messages_nacked_total{consumer_group=totals}":                         3,
		"millrace_subscriber_messages_expired_total{consumer_group=totals}":                        4,
		"millrace_subscriber_duplicates_dropped_total{consumer_group=totals}":                      5,
		"millrace_subscriber_events_fetched_total{consumer_group=totals}":                          6,
		"millrace_subscriber_events_late_total{consumer_group=totals}":                             7,
		"millrace_subscriber_events_reconciled_total{consumer_group=totals}":                       8,
		"millrace_subscriber_early_reconciliations_total{consumer_group=totals}":                   25,
		"millrace_subscriber_events_passed_over_total{consumer_group=totals,reason=filtered}":      9,
		"millrace_subscriber_events_passed_over_total{consumer_group=totals,reason=key_destroyed}": 10,
		"millrace_subscriber_events_passed_over_total{consumer_group=totals,reason=removed}":       11,
		"millrace_subscriber_failures_total{consumer_group=totals}":                                12,
		"millrace_subscriber_corrupt_items_total{consumer_group=totals}":                           13,
		"millrace_subscriber_aggregates_parked_total{consumer_group=totals}":                       14,
		"millrace_subscriber_events_poisoned_total{consumer_group=totals}":                         15,
		"millrace_subscriber_events_skipped_total{consumer_group=totals}":                          21,
		"millrace_subscriber_group_stops_total{consumer_group=totals}":                             22,
		"millrace_subscriber_events_deferred_total{consumer_group=totals}":                         23,
		"millrace_subscriber_events_retried_total{consumer_group=totals}":                          24,
		"millrace_subscriber_positions_beyond_journal_total{consumer_group=totals}":                20,
		"millrace_subscriber_positions_claimed_total{consumer_group=totals}":                       16,
		"millrace_subscriber_positions_stored_total{consumer_group=totals}":                        17,
		"millrace_subscriber_hint_reads_total{consumer_group=totals}":                              26,
		"millrace_subscriber_events_unannounced_total{consumer_group=totals}":                      27,
		"millrace_subscriber_max_lateness_seconds{consumer_group=totals}":                          18,
		"millrace_subscriber_max_ahead_seconds{consumer_group=totals}":                             19,
	}, gather(t, collector(s)))
}

func TestShardsHaveGaugesOfTheirOwnAndTopicsTheirSums(t *testing.T) {
	t.Parallel()
	s := source{shards: []subscriber.ShardStatus{
		{Topic: "account", Shard: 0, Epoch: 3, Behind: 7, OldestUnacked: now.Add(-90 * time.Second), Blocked: 2, Parked: 1},
		{Topic: "account", Shard: 5, Epoch: 1, CaughtUp: true},
		{Topic: "order", Shard: 0, Epoch: 2, CaughtUp: true},
	}}
	require.NoError(t, testutil.CollectAndCompare(collector(s), strings.NewReader(`
# HELP millrace_subscriber_blocked_aggregates Aggregates that wait for another attempt at their next event.
# TYPE millrace_subscriber_blocked_aggregates gauge
millrace_subscriber_blocked_aggregates{consumer_group="totals",shard="0",topic="account"} 2
millrace_subscriber_blocked_aggregates{consumer_group="totals",shard="5",topic="account"} 0
millrace_subscriber_blocked_aggregates{consumer_group="totals",shard="0",topic="order"} 0
# HELP millrace_subscriber_lag_events Known events that are not acked.
# TYPE millrace_subscriber_lag_events gauge
millrace_subscriber_lag_events{consumer_group="totals",shard="0",topic="account"} 7
millrace_subscriber_lag_events{consumer_group="totals",shard="5",topic="account"} 0
millrace_subscriber_lag_events{consumer_group="totals",shard="0",topic="order"} 0
# HELP millrace_subscriber_oldest_unacked_age_seconds Age of the oldest known event that is not acked; 0 if there is none.
# TYPE millrace_subscriber_oldest_unacked_age_seconds gauge
millrace_subscriber_oldest_unacked_age_seconds{consumer_group="totals",shard="0",topic="account"} 90
millrace_subscriber_oldest_unacked_age_seconds{consumer_group="totals",shard="5",topic="account"} 0
millrace_subscriber_oldest_unacked_age_seconds{consumer_group="totals",shard="0",topic="order"} 0
# HELP millrace_subscriber_parked_aggregates Aggregates that wait for an operator.
# TYPE millrace_subscriber_parked_aggregates gauge
millrace_subscriber_parked_aggregates{consumer_group="totals",shard="0",topic="account"} 1
millrace_subscriber_parked_aggregates{consumer_group="totals",shard="5",topic="account"} 0
millrace_subscriber_parked_aggregates{consumer_group="totals",shard="0",topic="order"} 0
# HELP millrace_subscriber_shard_epoch Term of the shard's owner; it rises when the owner changes.
# TYPE millrace_subscriber_shard_epoch gauge
millrace_subscriber_shard_epoch{consumer_group="totals",shard="0",topic="account"} 3
millrace_subscriber_shard_epoch{consumer_group="totals",shard="5",topic="account"} 1
millrace_subscriber_shard_epoch{consumer_group="totals",shard="0",topic="order"} 2
# HELP millrace_subscriber_shards_caught_up Logical shards that the subscriber owns and whose tail it has read to the end.
# TYPE millrace_subscriber_shards_caught_up gauge
millrace_subscriber_shards_caught_up{consumer_group="totals",topic="account"} 1
millrace_subscriber_shards_caught_up{consumer_group="totals",topic="order"} 1
# HELP millrace_subscriber_shards_held Logical shards that the subscriber owns.
# TYPE millrace_subscriber_shards_held gauge
millrace_subscriber_shards_held{consumer_group="totals",topic="account"} 2
millrace_subscriber_shards_held{consumer_group="totals",topic="order"} 1
`), "millrace_subscriber_blocked_aggregates", "millrace_subscriber_lag_events", "millrace_subscriber_oldest_unacked_age_seconds",
		"millrace_subscriber_parked_aggregates", "millrace_subscriber_shard_epoch", "millrace_subscriber_shards_caught_up",
		"millrace_subscriber_shards_held"))
}

func TestATopicWithoutShardsHasGaugesOfZero(t *testing.T) {
	t.Parallel()
	series := gather(t, collector(source{topics: []string{"account"}}))

	require.Contains(t, series, "millrace_subscriber_shards_held{consumer_group=totals,topic=account}")
	assert.Zero(t, series["millrace_subscriber_shards_held{consumer_group=totals,topic=account}"])
	assert.Contains(t, series, "millrace_subscriber_shards_caught_up{consumer_group=totals,topic=account}")
	assert.NotContains(t, series, "millrace_subscriber_lag_events{consumer_group=totals,shard=0,topic=account}")
}

func TestAShardThatIsHandedOverWithinAProcessIsCountedOnce(t *testing.T) {
	t.Parallel()
	for name, shards := range map[string][]subscriber.ShardStatus{
		"old first": {{Topic: "account", Epoch: 3, Behind: 7}, {Topic: "account", Epoch: 4, Behind: 2}},
		"new first": {{Topic: "account", Epoch: 4, Behind: 2}, {Topic: "account", Epoch: 3, Behind: 7}},
	} {
		series := gather(t, collector(source{shards: shards}))

		assert.Equal(t, 2, series["millrace_subscriber_lag_events{consumer_group=totals,shard=0,topic=account}"], name)
		assert.Equal(t, 1, series["millrace_subscriber_shards_held{consumer_group=totals,topic=account}"], name)
	}
}

func TestAnEventFromAClockThatIsAheadHasNoAge(t *testing.T) {
	t.Parallel()
	series := gather(t, collector(source{shards: []subscriber.ShardStatus{{Topic: "account", OldestUnacked: now.Add(time.Second)}}}))

	assert.Zero(t, series["millrace_subscriber_oldest_unacked_age_seconds{consumer_group=totals,shard=0,topic=account}"])
}

func TestMetricsAreNamedAsPrometheusWantsThem(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(
		collector(source{shards: []subscriber.ShardStatus{{Topic: "account"}}}),
		metrics.NewProjectionCollector(stats{}, metrics.ProjectionConfig{Name: "totals"}),
		metrics.NewProcessCollector(processStats{}, metrics.ProcessConfig{Type: "saga"}),
		metrics.NewRepositoryCollector(done{}, metrics.RepositoryConfig{AggregateType: "order"}),
	)
	problems, err := testutil.GatherAndLint(registry)

	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestTheDocumentationHasTheMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	overview, operations := read(t, "doc.go"), read(t, "../docs/operations/metrics.md")
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(
		collector(source{shards: []subscriber.ShardStatus{{Topic: "account"}}}),
		metrics.NewProjectionCollector(stats{}, metrics.ProjectionConfig{Name: "totals"}),
		metrics.NewProcessCollector(processStats{}, metrics.ProcessConfig{Type: "saga"}),
		metrics.NewRepositoryCollector(done{}, metrics.RepositoryConfig{AggregateType: "order"}),
		metrics.NewWakeupSenderCollector(sent{}), metrics.NewWakeupReceiverCollector(received{}),
		metrics.NewForwarderCollector(forwarded{}, metrics.BrokerConfig{ConsumerGroup: "kafka"}),
		metrics.NewReceiverCollector(stored{}, metrics.BrokerConfig{ConsumerGroup: "kafka"}),
	)
	families, err := registry.Gather()
	require.NoError(t, err)
	var names []string
	for _, family := range families {
		if names = append(names, family.GetName()); family.GetType().String() == "SUMMARY" {
			names = append(names, family.GetName()+"_sum", family.GetName()+"_count")
		}
		row := regexp.MustCompile(`(?m)^//\t` + family.GetName() + ` +` + strings.ToLower(family.GetType().String()) + `\b`)
		assert.Regexp(t, row, overview)
	}
	for _, name := range regexp.MustCompile(`millrace_\w+`).FindAllString(overview+operations, -1) {
		assert.Contains(t, names, name, "documented, and not there")
	}
}

func TestGroupsShareARegistryAndOneGroupDoesNotCollectTwice(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	group := func(name string) prometheus.Collector {
		return metrics.NewSubscriberCollector(source{}, metrics.SubscriberConfig{ConsumerGroup: name})
	}
	require.NoError(t, registry.Register(group("totals")))
	require.NoError(t, registry.Register(group("mails")))

	require.ErrorAs(t, registry.Register(group("totals")), &prometheus.AlreadyRegisteredError{})
	second := prometheus.WrapRegistererWith(prometheus.Labels{"member": "2"}, prometheus.NewPedanticRegistry())
	require.NoError(t, second.Register(group("totals")))
}

func TestWhatIsMissingIsAnErrorOfRegister(t *testing.T) {
	t.Parallel()
	for want, broken := range map[string]prometheus.Collector{
		"the subscriber is nil":  metrics.NewSubscriberCollector(nil, metrics.SubscriberConfig{ConsumerGroup: "totals"}),
		"ConsumerGroup is empty": metrics.NewSubscriberCollector(source{}, metrics.SubscriberConfig{}),
		"the projection is nil":  metrics.NewProjectionCollector(nil, metrics.ProjectionConfig{Name: "totals"}),
		"manager is nil":         metrics.NewProcessCollector(nil, metrics.ProcessConfig{Type: "saga"}),
		"Type is empty":          metrics.NewProcessCollector(processStats{}, metrics.ProcessConfig{}),
		"Name is empty":          metrics.NewProjectionCollector(stats{}, metrics.ProjectionConfig{}),
	} {
		assert.ErrorContains(t, prometheus.NewRegistry().Register(broken), want)
	}
}

func TestACollectorIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	c := collector(source{shards: []subscriber.ShardStatus{{Topic: "account"}}})
	var scrapes sync.WaitGroup
	for range 8 {
		scrapes.Add(1)
		go func() {
			defer scrapes.Done()
			assert.Equal(t, 34, testutil.CollectAndCount(c))
		}()
	}
	scrapes.Wait()
}
