// Package interop shares tables with a real program of the event-store-adapter family, in both
// directions: peer.js uses event-store-adapter-js. The package has only tests, which `make interop`
// runs on DynamoDB Local with Node; without Node they are skipped. docs/guides/interop.md describes
// the results.
package interop
