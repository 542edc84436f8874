package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/test/campaign"
	"github.com/millrace-dev/millrace/test/sim"
	"github.com/millrace-dev/millrace/test/sim/machine"
)

// sum is the sum of the results of all worlds so far.
type sum struct {
	machine        *machine.Machine
	like           sim.World // all worlds, except for their number
	trace, verbose bool
	stderr         io.Writer
	start          time.Time

	mu                                 sync.Mutex
	deliveries, events, done, findings int
	virtual                            time.Duration
	kinds                              map[sim.Kind]int
	seen                               map[string]int
	failed                             bool
}

func newSum(m *machine.Machine, like sim.World, stderr io.Writer) *sum {
	return &sum{
		machine: m, like: like, stderr: stderr, start: time.Now(),
		kinds: map[sim.Kind]int{}, seen: map[string]int{},
	}
}

func (s *sum) worlds(ctx context.Context, deliveries, parallel int) {
	stop := campaign.Progress(s.stderr, s.progress)
	defer stop()
	campaign.Run(ctx, parallel, func() bool { return s.enough(deliveries) }, s.world)
}

// enough reports whether to stop. It also stops at the first finding.
func (s *sum) enough(deliveries int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed || s.findings > 0 || s.deliveries >= deliveries
}

func (s *sum) world(ctx context.Context, number uint64) {
	world := s.like
	world.Number = number
	if s.trace {
		world.Trace = s.stderr
	}
	out, err := runWorld(ctx, s.machine, world)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = true
		if ctx.Err() == nil { // not interrupted
			_, _ = fmt.Fprintf(s.stderr, "%s\nsim: %s: %v\n", out.tail, flagsOf(world), err)
		}
		return
	}
	s.deliveries, s.events, s.done = s.deliveries+out.Deliveries, s.events+out.Events, s.done+1
	s.virtual += out.Virtual
	s.findings += len(out.Findings)
	if s.verbose {
		_, _ = fmt.Fprintf(s.stderr, "sim: %s: digest %s, %d deliveries of %d events in %v: %s\n",
			flagsOf(world), out.digest, out.Deliveries, out.Events, out.Virtual, out.Plan)
	}
	if len(out.Findings) > 0 {
		_, _ = fmt.Fprintf(s.stderr, "%s\nsim: that was the last of %s, digest %s: %s\n", out.tail, flagsOf(world), out.digest, out.Plan)
		for _, f := range out.Findings {
			s.kinds[f.Kind]++
			_, _ = fmt.Fprintf(s.stderr, "sim: %s: %s\n", flagsOf(world), f)
		}
		_, _ = fmt.Fprintf(s.stderr, "sim: again: go run ./test/cmd/sim %s -trace\n", flagsOf(world))
	}
	for what, n := range out.Seen {
		s.seen[what] += n
	}
}

// progress is a line about the worlds so far.
func (s *sum) progress() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("sim: %v: %d worlds, %v in them, %d deliveries of %d events, %d findings",
		time.Since(s.start).Round(time.Second), s.done, s.virtual.Round(time.Second), s.deliveries, s.events, s.findings)
}

// remark prints what happened, so that a reader notices when something never did.
func (s *sum) remark() {
	_, _ = fmt.Fprintf(s.stderr, "sim: %d worlds, %v in them, %d events in %v: %s\n", s.done, s.virtual.Round(time.Second), s.events,
		time.Since(s.start).Round(time.Second), campaign.Ranking(s.seen))
}
