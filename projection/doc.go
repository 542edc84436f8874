// Package projection builds read models in DynamoDB from the events that a
// [github.com/millrace-dev/millrace/subscriber] delivers, with exactly-once effects.
//
// A [Projection] is a set of typed reactions. Each takes an event and returns the [Write]s to its
// read model. The writes commit in one transaction with the consumer group's position on the
// event's aggregate, under the condition that the position has not moved. So the writes of an event
// happen once, in the order of the aggregate's events, whatever fails and however often the event
// is delivered.
//
//	orders, err := projection.New(client, projection.Config{},
//		projection.On(func(ctx context.Context, e OrderPlaced, r *journal.Record) ([]projection.Write, error) {
//			return []projection.Write{projection.Put(types.Put{ ... })}, nil
//		}),
//	)
//	router.AddConsumerHandler("order-history", "order", sub, orders.Handle)
//
// [NewBatch] returns a projection that handles runs of events, with one transaction for each run.
// [CreateTable] creates a table for the read model.
//
// # Conditions
//
// A write may have a condition. If it is false, a write that is marked [Write.Idempotent] is left
// out and the rest commits. For any other write that is an error of the reaction, a
// [*ConditionError]: the message is nacked and comes again.
//
// # Read models fed by several aggregates
//
// The position orders the events of one aggregate. Use [IdempotentUpdate] for an item that is
// updated by several aggregates (an order and its delivery, say), or by several groups. The item
// records, for each source aggregate, the number of the last event that updated it, and an older
// event changes nothing. If a condition of the caller's own is false, that still is an error.
//
// # Events of old and unknown types
//
// An event without a reaction is passed over, and [Stats] counts it as ignored. So a projection
// needs no setting for events of a newer program. If a projection gets a reaction to such events
// later, rebuild its read model.
//
// With [Config].Definitions the upcasters of those aggregates are applied first, so reactions see
// events in today's form only. If an upcaster splits an event, each part has its reaction, and the
// writes of the parts must be for different items; [NewBatch] adds the parts up instead. Without a
// definition an event has the name and the form in which it is stored.
//
// # Cost
//
// One event with n writes is one transaction of n+1 actions: two write units for each KB of each
// item, and two for the position. An event has at most 99 writes. An event without a reaction costs
// nothing by itself: its position is stored with the next flush of the subscriber. A run of events
// costs what one event does.
package projection
