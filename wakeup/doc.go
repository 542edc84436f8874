// Package wakeup lets processes wake each other. A [Sender] reports the commits of its process over
// any Watermill publisher. A [Receiver] takes these reports from any Watermill subscriber and wakes
// the consumer groups, broadcasts and process managers of its process. So an event of another
// process is handled after milliseconds instead of after the next poll.
//
//	config := wakeup.Config{Journal: j, Publisher: pub, Subscriber: sub}
//	sender, err := wakeup.NewSender(config, logger)
//	receiver, err := wakeup.NewReceiver(config, logger)
//	go receiver.Run(ctx)
//	defer sender.Close()
//
// In an App, set millrace.Config.Wakeups instead.
//
// # The broker
//
// Each message must reach each process, and none needs to be kept: core NATS without a queue group,
// an ephemeral JetStream consumer, or a Redis stream without a consumer group and with a maximum
// length. The guide docs/howto/wake-other-processes.md shows them. A broker that distributes the
// messages among the processes wakes the wrong ones.
//
// # A wake-up is only a hint
//
// A wake-up is a message with hints. A hint names an aggregate and a version. Neither is trusted:
// the group reads the events after its position, with strong consistency, and delivers what it
// finds. So a wake-up that is lost, late, repeated or forged loses no event, and delivers none
// twice or out of order. If it is lost, a poll finds the event.
//
// Each subscription acts on at most 100 hints a second. Beyond that, and while a backlog is read, a
// hint only causes a poll within PollInterval. So whoever can publish to the topic can cause reads
// at a bounded rate, and with PollRarely hide for a minute that wake-ups are lost, and nothing
// else. Only a group with a store of its own for positions (subscriber.Config.Positions) also
// claims the position of an aggregate that exists and that it does not remember.
//
// Messages contain aggregate types and ids in plain text. If ids are personal data, restrict who
// can read the topic, and encrypt the connections to the broker.
//
// # Cost
//
// A hint costs each group one read unit for each 4 KB of the events that it leads to: of each
// commit in the packed layout, of each event in the classic one. The group also reads the tail
// later, as it does for all events. A hint of an event that is handled already costs nothing if the
// group remembers the aggregate. Otherwise it costs one read unit for the position, and up to one
// more for the version or for what follows. A group that starts at a time and has no position of
// the aggregate also reads the head and about log2(n) of its n events.
//
// With [Config].PollRarely an idle shard costs 180 read units an hour for each partition of its
// tail, and 2,000 without it.
//
// A [Sender] never delays or fails a commit. It sends the first commit after a pause at once, and
// collects further ones for [Config].Interval. A message has up to 500 aggregates, each with its
// highest version, and up to 32 KB of ids. If 10,000 aggregates wait, because the broker is slow,
// commits to others are not reported. If Publish fails, what waited is dropped, and the sender
// pauses for a second.
package wakeup
