package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/process"
)

// Process is what a collector asks; a *process.Manager is one.
type Process interface {
	Stats() process.Stats
}

// ProcessConfig configures [NewProcessCollector].
type ProcessConfig struct {
	// Type is the label process_type: that of the manager's definition. Required.
	Type string
}

// NewProcessCollector makes a collector of a process manager's metrics. It is safe for concurrent
// use.
//
// Registering it fails if the manager is nil or the type empty, and if the registry has a collector
// of that type already.
func NewProcessCollector(p Process, config ProcessConfig) prometheus.Collector {
	switch {
	case p == nil:
		return invalid("the process manager is nil: give a *process.Manager")
	case config.Type == "":
		return invalid("Type is empty: give that of the process manager's definition")
	}
	named := func(name, help string, read func(process.Stats) uint64) count[process.Stats] {
		return newCount("process", name, help, prometheus.Labels{"process_type": config.Type}, read)
	}
	return &processCollector{process: p, counts: []count[process.Stats]{
		named("steps_total", "Steps that were stored.",
			func(s process.Stats) uint64 { return s.Steps }),
		named("inputs_passed_over_total", "Events and timeouts for which there was nothing to do.",
			func(s process.Stats) uint64 { return s.PassedOver }),
		named("inputs_repeated_total", "Events and timeouts that had been handled before.",
			func(s process.Stats) uint64 { return s.Repeated }),
		named("commands_sent_total", "Commands that were sent, those that were sent again included.",
			func(s process.Stats) uint64 { return s.Commands }),
		named("timeouts_fired_total", "Timeouts that were handled.",
			func(s process.Stats) uint64 { return s.Fired }),
		named("failures_total", "Times that a timeout or stored commands that were due failed, or the poll for them.",
			func(s process.Stats) uint64 { return s.Failed }),
		named("polls_total", "Polls of the manager for timeouts and commands that are due.",
			func(s process.Stats) uint64 { return s.Polls }),
	}}
}

type processCollector struct {
	process Process
	counts  []count[process.Stats]
}

// Describe is that of prometheus.Collector.
func (c *processCollector) Describe(out chan<- *prometheus.Desc) { describe(out, c.counts) }

// Collect is that of prometheus.Collector.
func (c *processCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.process.Stats()
	for _, count := range c.counts {
		out <- count.of(stats)
	}
}
