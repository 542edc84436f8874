// Package projection builds read models in DynamoDB from the events that a
// [github.com/millrace-dev/millrace/subscriber] delivers, with exactly-once effects.
//
// A [Projection] is a set of typed reactions: each takes an event and returns the
// [Write]s of its read model. The writes commit in one transaction with the consumer group's
// position on the event's aggregate, under the condition that the position
// still is where it was. So whatever fails, and however often an event is
// delivered, its writes happen once, and in the order of the aggregate's events.
//
//	orders, err := projection.New(client, projection.Config{},
//		projection.On(func(ctx context.Context, e OrderPlaced, r *journal.Record) ([]projection.Write, error) {
//			return []projection.Write{projection.Put(types.Put{ ... })}, nil
//		}),
//	)
//	router.AddConsumerHandler("order-history", "order", sub, orders.Handle)
//
// [NewBatch] makes one that handles runs of events, with one transaction for each. [CreateTable] creates a table for
// the read model.
//
// # Conditions
//
// A write may carry a condition. One marked [Write.Idempotent] is left out where its
// condition is false, and the rest commits. Any other false condition is
// the reaction's error, a [*ConditionError]: the message is nacked and comes again.
//
// # Read models fed by several aggregates
//
// The position orders the events of one aggregate. An item that takes updates from
// several (an order and its delivery, say), or from several groups, is updated with
// [IdempotentUpdate]: the item records for each source aggregate the number of the last event
// that updated it, and an older event changes nothing. A condition of the caller's own that is false is still an
// error.
//
// # Events of old and unknown types
//
// An event to which there is no reaction is passed over, known or not; [Stats] counts it as ignored. So a projection
// needs no setting for events of a newer program, and one that gets a reaction to them later is rebuilt. With
// [Config].Definitions the upcasters of those aggregates are applied first, so reactions know today's events alone. An event that is
// split gets the reactions to each of its parts, whose writes are for different items then: [NewBatch] adds the parts up instead.
// Without a definition an event comes under the name and in the form in which it is stored.
//
// # Cost
//
// One event with n writes is one transaction of n+1 actions: two write units for each KB
// of each item, and two for the position. An event to which there is no reaction costs nothing
// by itself: its position is stored with the next flush of the subscriber. A run of events costs what one event does.
package projection
