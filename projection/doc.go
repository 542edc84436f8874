// Package projection builds read models in DynamoDB. The effects of each event happen exactly once.
// A [github.com/millrace-dev/millrace/subscriber] delivers the events.
//
// A [Projection] is a set of typed reactions. Each reaction takes an event and returns the [Write]s
// to its read model. The writes commit in one transaction with the position of the consumer group
// on the event's aggregate, under the condition that the position has not moved. So the writes of
// an event happen once, in the order of the aggregate's events, whatever fails and however often
// the event is delivered.
//
//	orders, err := projection.New(client, projection.Config{},
//		projection.On(func(
//			ctx context.Context, e OrderPlaced, r *journal.Record,
//		) ([]projection.Write, error) {
//			return []projection.Write{projection.Put(types.Put{ ... })}, nil
//		}),
//	)
//	router.AddConsumerHandler("order-history", "order", sub, orders.Handle)
//
// [NewBatch] returns a projection that handles runs of events, with one transaction for each run.
// [NewRows] returns one that needs no transaction. [CreateTable] creates a table for the read
// model. A [Reader] reads its rows.
//
// # Conditions
//
// A write may have a condition. If the condition is false and the write is marked
// [Write.Idempotent], the write is dropped and the rest commits. For any other write, a false
// condition is an error of the reaction, a [*ConditionError]: the message is nacked and is
// delivered again.
//
// # Read models fed by several aggregates
//
// The position orders the events of one aggregate. Use [IdempotentUpdate] for an item that is
// updated by several aggregates (an order and its delivery, say), or by several groups. The item
// records, for each source aggregate, the number of the last event that updated it, and an older
// event changes nothing. If another condition of the update is false, that is still an error.
//
// # A row for each aggregate
//
// Most read models have one row for each aggregate. [NewRows] and [NewBatchRows] keep the position
// in that row, beside the attributes of the read model. One update of the row applies an event or a
// run of events, under the condition that the row is at the position before.
//
//	table := projection.RowTable{Table: orders}
//	rows, err := projection.NewRows(client, table, projection.Config{},
//		projection.OnRow(func(
//			ctx context.Context, e OrderPaid, r *journal.Record,
//		) (projection.RowUpdate, error) {
//			return projection.RowUpdate{Expression: "SET paid = :true", Values: ... }, nil
//		}),
//	)
//	sub, err := subscriber.NewSubscriber(subscriber.Config{Positions: rows, ...}, logger)
//	router.AddConsumerHandler("orders", "order", sub, rows.Handle)
//
// [OnState] computes the row from the state of the aggregate, which a rebuild loads from its
// snapshot.
//
// The row holds the group and topic, the count of resets, the epoch of the shard's owner and the
// number of the last applied event, in attributes that begin with "millrace_". A row without
// millrace_number has applied no event yet: a member may create it before the first event. Queries
// should ignore it. After a reset of the group, the first event that is handled again empties the
// row.
//
// A table of rows belongs to one journal, and only the group may write the rows. Another group, or
// a second topic with the same ids, gets [ErrRowTaken]. If a row is deleted, the group builds it
// again from the first event, when it handles the next event of the aggregate or makes a complete
// reconciliation. It then also handles the events that were skipped before, whose records stay. So
// a row must not expire, and an application that deletes rows gets them back. To hide a closed
// aggregate, set an attribute that queries evaluate.
//
// # Lists
//
// A [Reader] returns rows by key, and lists the rows of a partition of the table or of an [Index],
// in pages. It hides the attributes that begin with "millrace_", and rows that have no other
// attributes besides their keys.
//
//	orders := projection.Table{Name: "orders", PartitionKey: "id", Indexes: []projection.Index{
//		{Name: "by-customer", PartitionKey: "customer", SortKey: "placed"},
//	}}
//	reader := projection.Reader[Order]{Client: client, Table: orders, Decode: decodeOrder}
//	page, err := reader.Page(ctx, projection.Query{
//		Index: "by-customer", Partition: "anna", Descending: true, Token: token,
//	})
//
// # Events of old and unknown types
//
// A projection acks an event without a reaction, and [Stats] counts it as ignored. So a projection
// needs no setting for events of a newer program. If a projection gets a reaction to such events
// later, rebuild its read model.
//
// With [Config].Definitions the upcasters of those aggregates are applied first, so reactions
// receive events in their current form only. If an upcaster splits an event, the reaction is called
// for each part, and the writes of the parts must be for different items; [NewBatch] adds the parts
// up instead. Without a definition an event has its stored name and form.
//
// # Cost
//
// One event with n writes is one transaction of n+1 actions: two write units for each KB of each
// item, and two for the position. An event has at most 99 writes. An event without a reaction costs
// nothing by itself: its position is stored with the next flush of the subscriber. A run of events
// costs as much as one event.
//
// With [Rows] an event or a run costs one write unit for each KB of its row. The first one of an
// aggregate in the term of a shard's owner costs twice that, and three times after a reset, but not
// in the first term of a new group.
package projection
