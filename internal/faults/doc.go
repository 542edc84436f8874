// Package faults stands between the store and DynamoDB in tests: it counts calls and makes them fail the way
// they fail in production.
//
//	client := faults.New(dynamolocaltest.Client(t))
//	client.Inject(faults.TransactWriteItems, faults.Times(1, faults.LoseReply()))
//	...
//	assert.Equal(t, 2, client.Calls()[faults.TransactWriteItems])
//
// A [Fault] stands in for a call. It can make the call, or not, before and after it does something else; and
// gives the outcome that the caller sees. Errors look like those of the SDK, chain included, because what the
// store makes of them depends on it.
package faults
