// Package suite has no code of its own, only tests: Watermill's universal suite for Pub/Subs, run
// in full over the publisher and the subscriber, and Watermill's own router, middlewares and cqrs
// component on top of them.
//
// The universal suite runs in three shapes:
//
//   - ordered: default settings. The suite's messages name no aggregate, so each Publisher appends
//     them to one stream, in the order of which they are delivered;
//   - unordered: each message is an aggregate of its own, so all of them may be out for handling at
//     once;
//   - with new groups: each subscriber is a group of its own, which begins at the beginning of
//     history.
//
// The reconnect test has a DynamoDB Local of its own that is killed, twice, while thousands of
// messages go through it. With the build tag stress the suite runs many times side by side (`make
// stress`).
package suite
