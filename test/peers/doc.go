// Command peers does the same work with Millrace and with other event stores for DynamoDB, side by
// side: event-store-adapter-js and castore, and both layouts of Millrace.
//
//	make bench-peers
//	make bench-peers PEERS='-rounds 1000'
//
// It counts round trips and capacity units on dynamotest, and measures times on DynamoDB Local,
// where the stores take turns. peers.js has the stores in JavaScript, which one Node process runs
// for the whole comparison. That process measures its own times, so the exchange of lines with it
// does not count. docs/reference/benchmarks.md has the results. A test writes its table of units:
//
//	MILLRACE_INTEROP=1 go test ./test/peers -update
//
// With -peer NAME=PROGRAM the comparison includes another program of the event-store-adapter
// family. It answers the requests that peers.js answers, and uses the classic tables.
package main
