// Package interop shares tables with a real program of the event-store-adapter family, both ways:
// peer.js, on event-store-adapter-js. It has tests only, which `make interop` runs on DynamoDB
// Local with Node; without it they are skipped. docs/guides/interop.md says what they found.
package interop
