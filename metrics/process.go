package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/process"
)

// Process returns the counts of a process manager. *process.Manager implements it.
type Process interface {
	Stats() process.Stats
}

// ProcessConfig configures [NewProcessCollector].
type ProcessConfig struct {
	// Type is the label process_type, the aggregate type of the manager's definition. Required.
	Type string
}

// NewProcessCollector returns a collector of the metrics of a process manager. It is safe for
// concurrent use.
//
// Its registration fails if the manager is nil, if the type is empty, or if the registry already
// has a collector of that type.
func NewProcessCollector(p Process, config ProcessConfig) prometheus.Collector {
	switch {
	case p == nil:
		return invalid("the process manager is nil: pass a *process.Manager")
	case config.Type == "":
		return invalid("Type is empty: set it to the type of the process manager's definition")
	}
	named := func(name, help string, read func(process.Stats) uint64) count[process.Stats] {
		return newCount("process", name, help, prometheus.Labels{"process_type": config.Type}, read)
	}
	return &processCollector{process: p, counts: []count[process.Stats]{
		named("steps_total", "Steps that were stored.",
			func(s process.Stats) uint64 { return s.Steps }),
		named("inputs_ignored_total", "Events and timeouts that needed no step.",
			func(s process.Stats) uint64 { return s.Ignored }),
		named("inputs_repeated_total", "Events and timeouts that had been handled before.",
			func(s process.Stats) uint64 { return s.Repeated }),
		named("commands_sent_total", "Commands that were sent, including repetitions.",
			func(s process.Stats) uint64 { return s.Commands }),
		named("timeouts_fired_total", "Timeouts that were handled.",
			func(s process.Stats) uint64 { return s.Fired }),
		named("failures_total", "Failed attempts at due timeouts and commands, and failed polls.",
			func(s process.Stats) uint64 { return s.Failed }),
		named("polls_total", "Polls for due timeouts and commands.",
			func(s process.Stats) uint64 { return s.Polls }),
	}}
}

type processCollector struct {
	process Process
	counts  []count[process.Stats]
}

// Describe implements prometheus.Collector.
func (c *processCollector) Describe(out chan<- *prometheus.Desc) { describe(out, c.counts) }

// Collect implements prometheus.Collector.
func (c *processCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.process.Stats()
	for _, count := range c.counts {
		out <- count.of(stats)
	}
}
