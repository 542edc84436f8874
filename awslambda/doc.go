// Package awslambda runs handlers, projections, read models and process managers in AWS Lambda. A
// [Function] turns the events that Lambda passes to it into bursts of work: see
// millrace.App.CatchUp and [subscriber.Burst].
//
//	app, err := millrace.Open(ctx, client, config) // with ExistingTables
//	// Add handlers, projections and process managers to app.
//	function, err := awslambda.New(awslambda.Config{
//		Journal: app.Journal(), CatchUp: app.CatchUp, Wakeups: app.Wakeups(),
//	}, logger)
//	lambda.Start(function)
//
// A Function implements the interface Handler of github.com/aws/aws-lambda-go/lambda, which this
// package does not import. Create it once: all invocations of a process use it.
//
// # Events
//
// One function may have several triggers:
//
//   - The stream of the journal table, with keys only. Each record is a hint about an aggregate, in
//     both layouts. Records of removed items are ignored.
//   - A schedule of Amazon EventBridge, usually each minute. It causes a sweep. Without sweeps
//     nothing is complete: they find lost hints, retry, and fire the timeouts of process managers.
//   - Amazon SNS, or Amazon SQS, or SQS subscribed to SNS, with wake-ups of package wakeup. So more
//     than two functions can follow a journal, although a stream has at most two readers.
//   - Amazon SQS with commands. All messages that are not wake-ups are passed to [Config].Commands,
//     also those of SNS. Use SQS for them, because it delivers failed commands again.
//
// # What fails
//
// If the handler of an event fails, the invocation does not fail. The aggregate waits, and a sweep
// tries the event again when it is due. So a failed event never blocks a shard of the stream.
//
// Invoke returns an error if DynamoDB refuses requests, if there was no time for all events of the
// hints, if a handler does not end before the deadline, if it does not know the kind of the Lambda
// event, or if all messages of a batch fail. Lambda repeats the invocation as often as the trigger
// is configured for. If only some messages of an SQS batch fail, Invoke returns their ids instead
// of an error. This requires ReportBatchItemFailures in the event source mapping of the queue.
// Without it SQS deletes commands that have failed.
//
// # Concurrency
//
// Invocations may run concurrently, in any number of execution environments. Each takes shards of
// the group that no other invocation works on, and hands the hints of other shards over to the
// invocations that do. docs/howto/run-on-lambda.md says how many invocations increase the
// throughput.
//
// # Metrics
//
// An invocation writes a line in the embedded metric format of CloudWatch, with those of these
// metrics that apply to its event. If none applies, it writes nothing. The dimension is
// FunctionName.
//
//	Sweeps          sweeps that ended without an error
//	Left            aggregates with unhandled events after a sweep
//	Bursts          bursts with hints that ended without an error
//	Hints           aggregates in the hints of these bursts
//	Commands        messages that are not wake-ups
//	CommandFailures messages of these that have failed
package awslambda
