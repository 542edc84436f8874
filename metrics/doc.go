// Package metrics exports Prometheus metrics of the components of an application, such as
// subscribers, projections, process managers and repositories.
//
//	registry.MustRegister(
//		metrics.NewSubscriberCollector(sub, metrics.SubscriberConfig{ConsumerGroup: "totals"}),
//		metrics.NewProjectionCollector(totals, metrics.ProjectionConfig{Name: "totals"}),
//		metrics.NewProcessCollector(sagas, metrics.ProcessConfig{Type: "order-saga"}),
//		metrics.NewRepositoryCollector(orders, metrics.RepositoryConfig{AggregateType: "order"}),
//	)
//
// [Collectors] returns the collectors of everything that was added to a millrace.App.
//
// A collector reads the current values when Prometheus scrapes it. It makes no requests to
// DynamoDB. Counters start at 0 with the process. docs/operations/metrics.md has queries. Package
// metrics/otelmetrics has the same metrics for OpenTelemetry.
//
// # Subscribers
//
// These metrics have the label consumer_group. They count over all subscriptions of a subscriber:
//
//	millrace_subscriber_messages_delivered_total counter
//		messages delivered to handlers, including redeliveries
//	millrace_subscriber_messages_acked_total counter
//		messages that handlers acked
//	millrace_subscriber_messages_nacked_total counter
//		messages that handlers nacked
//	millrace_subscriber_messages_expired_total counter
//		messages that handlers did not ack or nack within AckDeadline
//	millrace_subscriber_duplicates_dropped_total counter
//		events that were read again and dropped, for example by trailing reads
//	millrace_subscriber_events_fetched_total counter
//		events that were read by aggregate: local commits, and gaps in the tail
//	millrace_subscriber_events_late_total counter
//		events that a trailing read found and the live read had missed
//	millrace_subscriber_events_reconciled_total counter
//		events that only a reconciliation found
//	millrace_subscriber_early_reconciliations_total counter
//		reconciliations of shards that were early because the tail index lagged
//	millrace_subscriber_positions_beyond_journal_total counter
//		times that a reconciliation found a position beyond the last event of the aggregate
//	millrace_subscriber_events_passed_over_total counter
//		events not delivered on purpose; label reason: filtered, key_destroyed or removed
//	millrace_subscriber_failures_total counter
//		reads of an aggregate that failed and were postponed
//	millrace_subscriber_corrupt_items_total counter
//		items of the tail that are not events, and heads that cannot be read
//	millrace_subscriber_aggregates_parked_total counter
//		aggregates that this subscriber parked
//	millrace_subscriber_events_poisoned_total counter
//		events that went to the poison queue
//	millrace_subscriber_events_skipped_total counter
//		events that were skipped with a record
//	millrace_subscriber_events_deferred_total counter
//		events that were deferred, to be retried on their own
//	millrace_subscriber_events_retried_total counter
//		deferred events that handlers acked
//	millrace_subscriber_group_stops_total counter
//		times that a failed event of this subscriber stopped the group
//	millrace_subscriber_positions_claimed_total counter
//		positions that were read for a new term of a shard
//	millrace_subscriber_hint_reads_total counter
//		reads by aggregate because of wake-ups from other processes
//	millrace_subscriber_events_unannounced_total counter
//		times that a poll found events of an aggregate that no wake-up has announced, while
//		polling was rare
//	millrace_subscriber_positions_stored_total counter
//		positions that were stored, with one write each
//
// These gauges are maxima since the subscriber was made:
//
//	millrace_subscriber_max_lateness_seconds gauge
//		lower bound of the longest delay with which an event appeared in the tail
//	millrace_subscriber_max_ahead_seconds gauge
//		longest time by which an event was dated ahead of this process's clock
//
// These gauges also have the label topic. There is one series for each subscribed topic, which is 0
// if the subscriber owns no shard of it:
//
//	millrace_subscriber_shards_held gauge
//		logical shards that the subscriber owns
//	millrace_subscriber_shards_caught_up gauge
//		owned shards whose tail it has read to the end
//
// These gauges have the labels topic and shard. There is one series for each owned shard:
//
//	millrace_subscriber_shard_epoch gauge
//		the epoch of the shard; it increases when the owner changes
//	millrace_subscriber_lag_events gauge
//		known events that are not acked
//	millrace_subscriber_oldest_unacked_age_seconds gauge
//		age of the oldest of these events; 0 if there is none
//	millrace_subscriber_blocked_aggregates gauge
//		aggregates that wait for another attempt at an event
//	millrace_subscriber_parked_aggregates gauge
//		aggregates that wait for an operator
//
// A shard has one owner, so the sum over the members of a group is the value of the group. A member
// has no series for shards that it does not own. The lag and the age include only events that the
// owner has read, so they are lower bounds until the shard is caught up. A group has five series
// for each shard, whatever the number of its members.
//
// # Projections
//
// These metrics have the label projection. They count the events of a projection, or of the
// handlers of a sqlprojection.Store:
//
//	millrace_projection_events_applied_total counter
//		events whose writes were committed
//	millrace_projection_events_ignored_total counter
//		events without writes
//	millrace_projection_writes_dropped_total counter
//		idempotent writes that were left out, since their condition was false
//
// # Process managers
//
// These metrics have the label process_type:
//
//	millrace_process_steps_total counter
//		steps that were stored
//	millrace_process_inputs_ignored_total counter
//		events and timeouts that needed no step
//	millrace_process_inputs_repeated_total counter
//		events and timeouts that had been handled before
//	millrace_process_commands_sent_total counter
//		commands that were sent, including repetitions
//	millrace_process_timeouts_fired_total counter
//		timeouts that were handled
//	millrace_process_failures_total counter
//		failed attempts at due timeouts and commands, and failed polls
//	millrace_process_polls_total counter
//		polls for due timeouts and commands
//
// # Repositories
//
// These metrics have the label aggregate_type. A commit of a repository.Transaction counts for
// the repository of each participant with events:
//
//	millrace_repository_decisions_total counter
//		calls of decisions by Execute; a conflict leads to another call
//	millrace_repository_decisions_refused_total counter
//		decisions that returned an error
//	millrace_repository_commits_total counter
//		commits that were written
//	millrace_repository_events_total counter
//		events in these commits
//	millrace_repository_commits_conflicting_total counter
//		commits that were not written because of another writer
//	millrace_repository_commits_repeated_total counter
//		commits that were not written because their command had been executed before
//	millrace_repository_commits_unknown_total counter
//		commits whose outcome was unknown
//	millrace_repository_commits_failed_total counter
//		commits that were not written for another reason
//	millrace_repository_commit_duration_seconds summary
//		duration of all of these commits, without quantiles
//	millrace_repository_snapshots_total counter
//		snapshots that were stored
//	millrace_repository_snapshots_left_out_total counter
//		snapshots that were not stored; the logger has the reasons
//	millrace_repository_loads_total counter
//		reads of the current state of an aggregate
//	millrace_repository_cache_hits_total counter
//		decisions and loads that started from a cached state
//	millrace_repository_cache_misses_total counter
//		decisions and loads without a cached state, in a repository with a cache
//
// # Other systems
//
// These metrics have the label consumer_group: the group that forwards events, or that handles
// received messages.
//
//	millrace_forward_messages_total counter
//		messages to other systems that the broker has accepted, including repetitions
//	millrace_forward_events_ignored_total counter
//		events without a message to other systems
//	millrace_forward_failures_total counter
//		failed attempts to forward an event
//	millrace_receive_messages_stored_total counter
//		messages of other systems that were stored, including repeated deliveries
//	millrace_receive_messages_ignored_total counter
//		messages of other systems with names that have no handler
//	millrace_receive_failures_total counter
//		failed attempts to store a message of another system
//
// # Wake-ups
//
//	millrace_wakeup_commits_total counter
//		commits of this process
//	millrace_wakeup_messages_sent_total counter
//		wake-ups that were published
//	millrace_wakeup_send_failures_total counter
//		wake-ups that could not be published
//	millrace_wakeup_aggregates_dropped_total counter
//		aggregates whose commits were not reported
//	millrace_wakeup_messages_received_total counter
//		wake-ups that were received
//	millrace_wakeup_aggregates_received_total counter
//		aggregates that the received wake-ups report
//	millrace_wakeup_messages_ignored_total counter
//		wake-ups about other journals
//	millrace_wakeup_invalid_total counter
//		messages that are no wake-ups, and reports of invalid ids
//
// # Several collectors of one name
//
// A registry accepts one collector for each consumer group, one for each projection, and one for
// each type of process. If a process has several subscribers in one group, add a label to each:
//
//	prometheus.WrapRegistererWith(prometheus.Labels{"member": "1"}, registry).MustRegister(...)
package metrics
