// Package otelmetrics exports the metrics of package metrics by OpenTelemetry.
//
//	registration, err := otelmetrics.Register(otel.Meter("millrace"), app.Components())
//
// A reader of the meter provider reads the present values from memory. It makes no requests to
// DynamoDB. The program chooses the SDK and the exporter.
//
// # Names
//
// Each metric of package metrics has one instrument. The name begins with millrace and the kind of
// component, and has no unit:
//
//	millrace_subscriber_messages_acked_total        millrace.subscriber.messages_acked, {message}
//	millrace_subscriber_oldest_unacked_age_seconds  millrace.subscriber.oldest_unacked_age, s
//	millrace_process_steps_total                    millrace.process.steps, {step}
//	millrace_repository_commit_duration_seconds     millrace.repository.commit_duration.sum, s,
//	                                                and .count, {commit}
//	millrace_subscriber_messages_delivered_total    messaging.client.consumed.messages, {message}
//
// An exporter to Prometheus makes the names of package metrics of them again, except of the last
// two.
//
// The attributes are those of the semantic conventions where there are any:
//
//	consumer_group  messaging.consumer.group.name
//	topic           messaging.destination.name
//	shard           messaging.destination.partition.id
//	reason          millrace.reason
//	projection      millrace.projection.name
//	process_type    millrace.process.type
//	aggregate_type  millrace.aggregate.type
//
// What rises is an observable counter. Numbers of shards, events and aggregates that can be added
// up are observable up-down counters, and the others are gauges.
package otelmetrics
