// Package dynamotest is a DynamoDB in the process of a test: real requests of the real SDK client,
// answered from memory in microseconds, with faults on demand.
//
//	func TestOrderIsPlacedOnceThoughTheReplyIsLost(t *testing.T) {
//		db := dynamotest.New(t)
//		shop := NewShop(db.Client()) // your program: it creates its table, and puts an item per order
//		lost := db.Inject(dynamotest.LoseReply(), dynamotest.On("PutItem"), dynamotest.Times(1))
//
//		if err := shop.Place(t.Context(), "order-1"); err != nil || lost.Fired() != 1 {
//			t.Fatal(err, lost.Fired())
//		}
//		...
//	}
//
// [New] returns a [DB] of the test's own, ready at once and closed with the test; any number of
// them live side by side. [DB.Client] is a *dynamodb.Client whose requests go to it without a
// socket, [DB.Handler] serves other programs. [Open] is New for a program that is no test, such as
// a demo.
//
// # What it does
//
// Tables with global and local indexes; PutItem, GetItem, UpdateItem, DeleteItem, Query, Scan with
// parallel segments, the batches, the transactions, TTL. All expressions; all checks and limits of
// items, keys, pages, batches and transactions; consumed capacity by the rules that AWS publishes;
// numbers of 38 digits; ClientRequestToken. A test compares it with DynamoDB Local, reply by reply,
// over generated sequences of operations.
//
// What is not supported is refused with an error that names it: the parameters from before
// expressions (Expected, KeyConditions, ...), PartiQL, streams, backups, global tables, tags,
// DescribeLimits and the like; also any parameter of a later version of the SDK. What has no
// meaning in memory is kept, described and without effect: provisioned throughput (use [Throttle]
// or [PartitionLimits]), table class, encryption.
//
// # Faults
//
// [DB.Inject] puts a [Fault] in place and [When] conditions say to which calls it happens:
//
//	db.Inject(dynamotest.Throttle(), dynamotest.Table("orders"), dynamotest.Times(3))
//	db.Inject(dynamotest.DelayIndex(0, time.Second), dynamotest.Index("by-customer"))
//	db.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Chance(0.05))
//	db.Inject(dynamotest.Hold(dynamotest.For(10*time.Millisecond))) // transactions on one item conflict
//
// A fault without [On] also happens to calls on tables, such as CreateTable. The Injection reports
// how often it happened; if the test fails, the faults in place that did not happen at all are
// logged.
//
// What is drawn at random comes from [Seed], by call rather than by time, so that a failure can be
// repeated: the n-th call of one operation on the same keys draws the same in every run; see
// [Chance]. [DB.Storm] injects them all.
//
// Faults that wait take a function, which can do in the meantime what another client would:
//
//	db.Inject(dynamotest.Tear(func(ctx context.Context) {
//		// here one part of the transaction is written, and the other is not
//	}))
//
// A request can reach the database after its client has given it up, the hardest case for a retry
// to get right:
//
//	late := db.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
//	... // the client sees its connection break, and perhaps writes something else
//	late.Arrive()
//
// With [LateBy] it arrives by itself, and with [Congestion] the client waits for that, or gives up.
//
// The SDK retries neither a conflict nor a transaction that was cancelled, whatever the reason; a
// write of a batch that conflicts comes back unprocessed. The rest it retries, but here without
// long pauses; see [DB.Client].
//
// # Other databases
//
// [NewProxy] puts the same faults, conditions and recordings in front of any client: one for
// DynamoDB Local or AWS, or one of several that share a DB, so that only one program sees the
// faults:
//
//	proxy := dynamotest.NewProxy(t, client)
//	shop := NewShop(proxy.Client())
//	proxy.Inject(dynamotest.Throttle(), dynamotest.On("Query"))
//
// # Time
//
// [DB.Clock] is the database's time. Move it to let items expire and changes reach their indexes;
// freeze it to decide yourself. Nothing runs in the background except the requests that a fault has
// delayed, which Close drops, so a database also lives in a bubble of testing/synctest.
//
// # Round trips and cost
//
// [DB.Record] keeps each [Call] with its operation, tables, items, bytes, and capacity units:
//
//	recording := db.Record()
//	...
//	assert.Len(t, recording.Calls("TransactWriteItems"), 1)
//	read, write := recording.Units()
//
// [DB.Observe] hands each one to a function instead.
//
// # Where it differs from DynamoDB
//
// Indexes are up to date at once, eventually consistent reads see everything, and transactions do
// not conflict, until a fault says otherwise. Tables are active as soon as they are created. Items
// expire when the clock passes their TTL, which takes DynamoDB up to days; see [ExpiryDelay]. The
// order of partitions in a Scan, and that of rows in an index whose keys are equal, is arbitrary as
// in DynamoDB, but the same in every run. A partition takes any throughput, unless
// [PartitionLimits] says otherwise, and can hold more than 10 GB. Deleting a table does not wait
// for transactions on it.
package dynamotest
