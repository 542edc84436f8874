// Package dynamotest is a DynamoDB in the process of a test. It answers real requests of the real
// SDK client from memory in microseconds, and injects faults on demand.
//
//	func TestOrderIsPlacedOnceThoughTheReplyIsLost(t *testing.T) {
//		db := dynamotest.New(t)
//		shop := NewShop(db.Client()) // your program: it creates a table and puts orders
//		lost := db.Inject(dynamotest.LoseReply(), dynamotest.On("PutItem"), dynamotest.Times(1))
//
//		if err := shop.Place(t.Context(), "order-1"); err != nil || lost.Fired() != 1 {
//			t.Fatal(err, lost.Fired())
//		}
//		...
//	}
//
// [New] returns a separate [DB] for a test. It is ready immediately and closes with the test. Any
// number of them can exist at the same time. [DB.Client] is a *dynamodb.Client whose requests reach
// it without a socket. [DB.Handler] serves other programs. [Open] is like New, for programs that
// are not tests, such as a demo.
//
// # Supported operations
//
// The database supports tables with global and local indexes, PutItem, GetItem, UpdateItem,
// DeleteItem, Query, Scan with parallel segments, batches, transactions, and TTL. It supports all
// expressions, and all checks and limits of items, keys, pages, batches and transactions. It
// reports consumed capacity by the published rules of AWS. It has numbers of 38 digits and
// ClientRequestToken. A test compares each of its replies with DynamoDB Local over generated
// sequences of operations. Where DynamoDB Local differs from AWS, the database follows AWS.
//
// An unsupported request fails with an error that names the operation or parameter: the parameters
// from before expressions (Expected, KeyConditions, ...), PartiQL, streams, backups, global tables,
// tags, DescribeLimits and similar ones, and any parameter of a later version of the SDK. Settings
// that have no meaning in memory are stored and described, but have no effect: provisioned
// throughput (use [Throttle] or [WithPartitionLimits]), table class and encryption.
//
// # Faults
//
// [DB.Inject] injects a [Fault]. [When] conditions select the calls to which it happens:
//
//	db.Inject(dynamotest.Throttle(), dynamotest.Table("orders"), dynamotest.Times(3))
//	db.Inject(dynamotest.DelayIndex(0, time.Second), dynamotest.Index("by-customer"))
//	db.Inject(dynamotest.StaleReads(0, time.Second), dynamotest.On("Query"))
//	db.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Chance(0.1))
//	// This one makes transactions on one item conflict:
//	db.Inject(dynamotest.Hold(dynamotest.For(10 * time.Millisecond)))
//
// A fault without [On] also happens to calls on tables, such as CreateTable. [Injection.Fired]
// returns how often it happened. If the test fails, the faults that did not happen at all are
// logged.
//
// Random decisions depend on [WithSeed] and on the call, and not on time, so that a failure can be
// repeated. The n-th call of one operation on the same keys has the same decisions in every run;
// see [Chance]. [DB.Storm] injects all faults.
//
// Faults that wait call a function. It can do what another client would do in the meantime:
//
//	db.Inject(dynamotest.Tear(func(ctx context.Context) {
//		// here one part of the transaction is written, and the other is not
//	}))
//
// A request can also reach the database after its client has given up. This is the most difficult
// case for a retry:
//
//	late := db.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
//	... // the client's connection breaks, and it may write something else
//	late.Arrive()
//
// With [LateBy] the request arrives by itself. With [Congestion] the client may wait for that.
//
// The SDK does not retry a conflict, or a cancelled transaction with any reason. A write of a batch
// that has a conflict comes back unprocessed. The SDK retries other errors, but here without long
// pauses; see [DB.Client].
//
// # Other databases
//
// [NewProxy] adds the same faults, conditions and recordings to any client. This can be a client of
// DynamoDB Local or AWS, or one of several clients of a DB, so that only one program has the
// faults:
//
//	proxy := dynamotest.NewProxy(t, client)
//	shop := NewShop(proxy.Client())
//	proxy.Inject(dynamotest.Throttle(), dynamotest.On("Query"))
//
// # Time
//
// [DB.Clock] is the time of the database. Move it so that items expire and changes reach their
// indexes, or freeze it. Nothing runs in the background except requests that a fault has delayed,
// and Close drops these. So a database can also run in a bubble of testing/synctest.
//
// # Round trips and cost
//
// [DB.Record] records each [Call] with its operation, tables, items, bytes, and capacity units:
//
//	recording := db.Record()
//	...
//	assert.Len(t, recording.Calls("TransactWriteItems"), 1)
//	read, write := recording.Units()
//
// [DB.Observe] passes each call to a function instead.
//
// # Differences from DynamoDB
//
// Without faults, indexes are always up to date, eventually consistent reads see everything, and
// transactions do not conflict: see [DelayIndex], [StaleReads] and [Hold]. Tables are active as
// soon as they are created. Items expire when the clock passes their TTL; DynamoDB takes up to
// days, see [WithExpiryDelay]. The order of partitions in a Scan, and the order of index rows with
// equal keys, is arbitrary as in DynamoDB, but the same in every run. A partition has no throughput
// limit, unless [WithPartitionLimits] sets one, and can contain more than 10 GB. Deleting a table
// does not wait for transactions on it.
//
// # Errors
//
// Calls return the error types of the SDK. After Close they return [ErrClosed]. A mistake in a
// test, such as a condition with an unknown operation, panics, because the test would otherwise
// pass without its fault.
package dynamotest
