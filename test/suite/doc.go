// Package suite has only tests. They run Watermill's universal suite for Pub/Subs on the publisher
// and the subscriber, and Watermill's router, middlewares and cqrs component on top of them.
//
// The universal suite runs in three shapes:
//
//   - ordered: default settings. The messages of the suite name no aggregate, so each Publisher
//     appends them to one stream, and they are delivered in its order;
//   - unordered: each message is its own aggregate, so all of them may be handled concurrently;
//   - with new groups: each subscriber is its own group, which begins with the first event.
//
// Watermill's tests of its components, such as cqrs, requestreply, forwarder and the router, run
// with the publisher and the subscriber in the place of its GoChannel. They are copied from the
// module cache when they run.
//
// The reconnect test has its own DynamoDB Local, which is killed twice while thousands of messages
// pass through it. With the build tag stress the suite runs many times concurrently (`make
// stress`).
package suite
