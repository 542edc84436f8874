// Package metrics has Prometheus collectors for subscribers, projections, process managers and
// repositories.
//
//	registry.MustRegister(
//		metrics.NewSubscriberCollector(sub, metrics.SubscriberConfig{ConsumerGroup: "totals"}),
//		metrics.NewProjectionCollector(totals, metrics.ProjectionConfig{Name: "totals"}),
//		metrics.NewProcessCollector(sagas, metrics.ProcessConfig{Type: "order-saga"}),
//		metrics.NewRepositoryCollector(orders, metrics.RepositoryConfig{AggregateType: "order"}),
//	)
//
// A collector asks when it is scraped, and holds nothing. A scrape reads memory alone: no round
// trip, no read unit. docs/operations/README.md has alerts and queries.
//
// # Subscribers
//
// All have the label consumer_group. What a subscriber has done since it was made, over all its
// subscriptions:
//
//	millrace_subscriber_messages_delivered_total    counter  messages handed to handlers, redeliveries included
//	millrace_subscriber_messages_acked_total        counter
//	millrace_subscriber_messages_nacked_total       counter
//	millrace_subscriber_messages_expired_total      counter  messages that were not answered within AckDeadline
//	millrace_subscriber_duplicates_dropped_total    counter  events seen again and dropped, as by trailing reads
//	millrace_subscriber_events_fetched_total        counter  events read by aggregate: local commits, and gaps in the tail
//	millrace_subscriber_events_late_total           counter  events that a trailing read found, and the live read had missed
//	millrace_subscriber_events_reconciled_total     counter  events that only a reconciliation found
//	millrace_subscriber_positions_beyond_journal_total counter positions that a reconciliation found beyond the last event of their aggregate
//	millrace_subscriber_events_passed_over_total    counter  events not delivered, by reason: filtered, key_destroyed, removed
//	millrace_subscriber_failures_total              counter  readings of an aggregate that failed and were put off
//	millrace_subscriber_corrupt_items_total         counter  items of the tail that are no events, heads that cannot be read
//	millrace_subscriber_aggregates_parked_total     counter  aggregates parked by this subscriber
//	millrace_subscriber_events_poisoned_total       counter  events that went to the poison queue
//	millrace_subscriber_events_skipped_total        counter  events that were skipped with a record
//	millrace_subscriber_events_deferred_total       counter  deferred, to be retried on their own
//	millrace_subscriber_events_retried_total        counter  deferred and acked
//	millrace_subscriber_group_stops_total           counter  times that an event of this subscriber's stopped the group
//	millrace_subscriber_positions_claimed_total     counter  positions read for a new term
//	millrace_subscriber_positions_stored_total      counter  positions stored: one write each
//
// How far times of events were off at most since it was made, which only a restart sets back:
//
//	millrace_subscriber_max_lateness_seconds        gauge    how long after its time, at least, an event showed in the tail
//	millrace_subscriber_max_ahead_seconds           gauge    how far ahead of this process's clock an event was dated
//
// What it holds of each topic, with the label topic:
//
//	millrace_subscriber_shards_held                 gauge    logical shards
//	millrace_subscriber_shards_caught_up            gauge    those of them whose tail it has read to the end
//
// And of each logical shard that it holds, with the labels topic and shard:
//
//	millrace_subscriber_shard_epoch                 gauge    the term; it rises whenever the shard changes hands
//	millrace_subscriber_lag_events                  gauge    events known and not acked
//	millrace_subscriber_oldest_unacked_age_seconds  gauge    since the oldest of them occurred; 0 if there is none
//	millrace_subscriber_blocked_aggregates          gauge    aggregates that wait for another attempt
//	millrace_subscriber_parked_aggregates           gauge    aggregates given up until someone resumes them
//
// A shard has one holder, so sums over the members of a group are those of the group. A member that
// holds nothing of a topic says nothing of it. Lag and age are of what the holder knows of: lower
// bounds until the shard is caught up. The gauges make five series for each shard and group,
// however many members there are.
//
// # Projections
//
// What a projection, or the handlers of a sqlprojection.Store, have done since it was made, with
// the label projection:
//
//	millrace_projection_events_applied_total        counter  events whose writes were committed
//	millrace_projection_events_ignored_total        counter  events without writes
//	millrace_projection_writes_dropped_total        counter  idempotent writes that were left out
//
// # Process managers
//
// What a process manager has done since it was made, with the label process_type:
//
//	millrace_process_steps_total                    counter  steps that were stored
//	millrace_process_inputs_passed_over_total       counter  events and timeouts for which there was nothing to do
//	millrace_process_inputs_repeated_total          counter  events and timeouts that had been handled before
//	millrace_process_commands_sent_total            counter  commands that were sent, those sent again included
//	millrace_process_timeouts_fired_total           counter  timeouts that were handled
//	millrace_process_failures_total                 counter  times that a timeout or stored commands that were due failed, or the poll for them
//	millrace_process_polls_total                    counter  polls for timeouts and commands that are due
//
// # Repositories
//
// What a repository has done since it was made, with the label aggregate_type. A commit of
// repository.Parts counts for the repository of each part that has events:
//
//	millrace_repository_decisions_total             counter  runs of a decision by Execute; more than commits and refusals: conflicts
//	millrace_repository_decisions_refused_total     counter  decisions that returned an error
//	millrace_repository_commits_total               counter  commits that were written
//	millrace_repository_events_total                counter  events in them
//	millrace_repository_commits_conflicting_total   counter  commits that were not written, because somebody else was faster
//	millrace_repository_commits_repeated_total      counter  commits that were not written, because their command was executed before
//	millrace_repository_commits_unknown_total       counter  commits whose outcome was unknown
//	millrace_repository_commits_failed_total        counter  commits that were not written for another reason
//	millrace_repository_commit_duration_seconds     summary  time that all of these took, without quantiles
//	millrace_repository_snapshots_total             counter  snapshots that were stored
//	millrace_repository_snapshots_left_out_total    counter  snapshots that were not stored; the logger has the reasons
//	millrace_repository_loads_total                 counter  reads of the present state of an aggregate
//	millrace_repository_cache_hits_total            counter  decisions and loads that began with a state from the cache
//	millrace_repository_cache_misses_total          counter  those that did not, in a repository with a cache
//
// # Several of one name
//
// A registry takes one collector for each consumer group, one for each projection, and one for each
// type of processes. Where a process has several subscribers in one group, give each a label of its
// own:
//
//	prometheus.WrapRegistererWith(prometheus.Labels{"member": "1"}, registry).MustRegister(...)
package metrics
