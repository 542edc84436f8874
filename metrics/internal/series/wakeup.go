package series

import "github.com/millrace-dev/millrace/wakeup"

var senderEntries = []entry[wakeup.SenderStats]{
	counter("wakeup_commits_total", "{commit}", "Commits of this process.",
		func(s wakeup.SenderStats) uint64 { return s.Commits }),
	counter("wakeup_messages_sent_total", "{message}", "Wake-ups that were published.",
		func(s wakeup.SenderStats) uint64 { return s.Messages }),
	counter("wakeup_send_failures_total", "{failure}", "Wake-ups that could not be published.",
		func(s wakeup.SenderStats) uint64 { return s.Failures }),
	counter("wakeup_aggregates_dropped_total", "{aggregate}", "Aggregates whose commits were not reported.",
		func(s wakeup.SenderStats) uint64 { return s.Dropped }),
}

var receiverEntries = []entry[wakeup.ReceiverStats]{
	counter("wakeup_messages_received_total", "{message}", "Wake-ups that were received.",
		func(s wakeup.ReceiverStats) uint64 { return s.Messages }),
	counter("wakeup_aggregates_received_total", "{aggregate}", "Aggregates that the received wake-ups report.",
		func(s wakeup.ReceiverStats) uint64 { return s.Aggregates }),
	counter("wakeup_messages_ignored_total", "{message}", "Wake-ups about other journals.",
		func(s wakeup.ReceiverStats) uint64 { return s.Ignored }),
	counter("wakeup_invalid_total", "{message}", "Messages that are no wake-ups, and reports of invalid ids.",
		func(s wakeup.ReceiverStats) uint64 { return s.Invalid }),
}

// OfWakeupSender returns the metrics of a sender of wake-ups.
func OfWakeupSender(stats func() wakeup.SenderStats) Component {
	return of("wakeup sender", "", Label{}, stats, senderEntries)
}

// OfWakeupReceiver returns the metrics of a receiver of wake-ups.
func OfWakeupReceiver(stats func() wakeup.ReceiverStats) Component {
	return of("wakeup receiver", "", Label{}, stats, receiverEntries)
}
