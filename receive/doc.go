// Package receive takes messages of another Pub/Sub into the journal, where a consumer group
// handles them: in order, with failure policies, and visible to operators. It is an inbox.
//
//	in, err := receive.New(receive.Config{
//		Publisher: p, Topic: "payments-inbox",
//		Key: func(m *message.Message) string { return m.Metadata.Get("order") },
//	}, logger)
//	router.AddConsumerHandler("payments", "payments.settled", broker, in.Handle)
//
// A subscriber of the topic payments-inbox then delivers the messages. In an App,
// millrace.App.Receive sets up both, and passes the messages to handlers of commands.
//
// # Why messages are stored first
//
// A message is acked to the other Pub/Sub when it is stored, which takes one commit. So a message
// that cannot be handled does not block the other Pub/Sub, and is not delivered again and again at
// full speed. It blocks only the messages with the same key, and subscriber.Config.Failures says
// what happens to it.
//
// # Once each
//
// The other Pub/Sub can deliver a message more than once. Each delivery is stored, with the UUID of
// the message or the id of Config.ID. Package command executes a command once for each UUID, for as
// long as journal.Config.CommandRetention. For other handlers use package subscriber/dedup.
//
// # Order
//
// With Config.Key, messages with the same key are handled in the order in which they were stored,
// and other messages do not wait for them. Without it, messages have no order.
//
// # Failures
//
// If a message cannot be stored, Handle waits before it returns the error, for a second at first
// and up to a minute after many failures. The message is then nacked, and the other Pub/Sub
// delivers it again. A panic of a function of the Config is such a failure. A message that is too
// large for an item of DynamoDB (about 400 KB) cannot be stored at all; use compression
// (journal/compress), and set Config.DeadLetter.
package receive
