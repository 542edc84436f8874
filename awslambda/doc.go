// Package awslambda runs handlers, projections, read models and process managers in AWS Lambda. A
// [Function] turns the events that Lambda passes to it into bursts of work: see
// millrace.App.CatchUp and [subscriber.Burst].
//
// app, err := millrace.Open(ctx, client, config) // with ExistingTables; then add everything to it
// function, err := awslambda.New(awslambda.Config{Journal: app.Journal(), CatchUp: app.CatchUp},
// logger)
//
//	lambda.Start(function)
//
// A Function implements the interface Handler of github.com/aws/aws-lambda-go/lambda, which this
// package does not import. Make it once, in the initialisation, since each invocation uses it.
//
// # Events
//
// One function may have several triggers:
//
//   - The stream of the journal table, with keys only. Each record is a hint about an aggregate, in
//     both layouts. Records of removed items are ignored.
//   - A schedule of Amazon EventBridge, usually each minute. It causes a sweep. Without sweeps
//     nothing is complete: they find lost hints, retry, and fire the timeouts of process managers.
//   - Amazon SNS and Amazon SQS, with wake-ups of package wakeup, directly or through one another.
//     So more than two functions can follow a journal, although a stream has only two readers.
//   - Amazon SQS with commands: messages that are no wake-ups are passed to [Config].Commands.
//
// # What fails
//
// An event whose handler fails is no failure of the invocation. Its aggregate waits, and a sweep
// tries it again when it is due. So it never blocks the stream's shard.
//
// Invoke returns an error if DynamoDB refuses requests, or if the trigger is wrong. Lambda repeats
// the invocation, as often as the trigger is configured for. For messages of SQS it returns the ids
// of those that have failed instead. This requires ReportBatchItemFailures in the event source
// mapping of the queue. Without it SQS deletes commands that have failed.
//
// # Concurrency
//
// Invocations may run concurrently, in any number of execution environments. Each works on shards
// that no other one works on, and leaves hints of other shards to those. The guide
// docs/howto/run-on-lambda.md says how many help.
//
// # Metrics
//
// Each invocation writes one line in the embedded metric format of CloudWatch, which makes these
// metrics of it. Their dimension is FunctionName.
//
//	Sweeps          sweeps that ended without an error
//	Left            aggregates with unhandled events after a sweep
//	Bursts          bursts with hints that ended without an error
//	Hints           aggregates in their hints
//	Commands        messages that were passed to Config.Commands
//	CommandFailures those that have failed
//	Errors          1 if the invocation returns an error, else 0
//	Duration        time of the invocation, in milliseconds
package awslambda
