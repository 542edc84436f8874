package series

import "github.com/millrace-dev/millrace/process"

var processEntries = []entry[process.Stats]{
	counter("process_steps_total", "{step}", "Steps that were stored.",
		func(s process.Stats) uint64 { return s.Steps }),
	counter("process_inputs_ignored_total", "{input}", "Events and timeouts that needed no step.",
		func(s process.Stats) uint64 { return s.Ignored }),
	counter("process_inputs_repeated_total", "{input}", "Events and timeouts that had been handled before.",
		func(s process.Stats) uint64 { return s.Repeated }),
	counter("process_commands_sent_total", "{command}", "Commands that were sent, including repetitions.",
		func(s process.Stats) uint64 { return s.Commands }),
	counter("process_timeouts_fired_total", "{timeout}", "Timeouts that were handled.",
		func(s process.Stats) uint64 { return s.Fired }),
	counter("process_failures_total", "{failure}", "Failed attempts at due timeouts and commands, and failed polls.",
		func(s process.Stats) uint64 { return s.Failed }),
	counter("process_polls_total", "{poll}", "Polls for due timeouts and commands.",
		func(s process.Stats) uint64 { return s.Polls }),
}

// OfProcess returns the metrics of a process manager.
func OfProcess(stats func() process.Stats, aggregateType string) Component {
	return of("process", aggregateType, processType, stats, processEntries)
}
