// Package machine is a small AWS Lambda on one machine, for demos and tests. It runs functions as
// Lambda does: in processes that are reused, frozen between invocations, and killed at their
// time-out.
//
//	function, err := machine.NewFunction(machine.Config{Name: "api", Timeout: 30 * time.Second})
//	defer function.Close()
//	err = function.Invoke(ctx, payload, response)
//
// A [Function] starts an environment for each concurrent invocation, up to its reserved
// concurrency. An environment is a process of the function's command and an HTTP server with the
// Lambda Runtime API, which serves this process alone. These invoke functions:
//
//   - A [Mapping] is the event source mapping of a DynamoDB stream. It reads the shards, and
//     invokes a function with batches of records. It repeats batches that fail, and then drops
//     them.
//   - A [Schedule] invokes a function at an interval.
//   - A [URL] is a function URL with streamed responses.
//
// The Runtime Interface Emulator of AWS serves one invocation at a time in one environment, which
// it does not freeze. It needs a newer Go than this module, and its packages are internal, so it
// can only run as a program of its own. So this package has endpoints of its own.
package machine
