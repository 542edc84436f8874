// Package campaign runs worlds of a test harness, each of which is decided by a seed and its
// number, until there were enough. It sums up their reports and prints what they have found.
package campaign

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Campaign is a number of worlds.
type Campaign struct {
	// Name is the name of the program, in test/cmd.
	Name string
	// Unit is what [Report.Count] counts.
	Unit string
	// Notes receives findings, progress, and what happened in the worlds.
	Notes io.Writer
	// Verbose prints a line for each world.
	Verbose bool
	// World runs a world. An error is not about the library. The report beside it may have a trace.
	World func(ctx context.Context, number uint64) (Report, error)
	// Flags returns the flags of the program that run a world alone.
	Flags func(number uint64) string
	// Again is added to these flags in the command that repeats a world with findings.
	Again string

	begun  time.Time
	mu     sync.Mutex
	worlds int
	sum    Report
	failed bool
}

// Run runs worlds 0, 1, 2 and so on, with limited concurrency, until they have counted enough. It
// also stops when a world has failed or found something, or ctx has ended.
func (c *Campaign) Run(ctx context.Context, parallel, enough int) {
	c.begun = time.Now()
	stop := c.progress()
	defer stop()
	var next atomic.Uint64
	var wait sync.WaitGroup
	for range max(1, parallel) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for ctx.Err() == nil && !c.isOver(enough) {
				c.one(ctx, next.Add(1)-1)
			}
		}()
	}
	wait.Wait()
}

// RunOne runs one world.
func (c *Campaign) RunOne(ctx context.Context, number uint64) {
	c.begun = time.Now()
	c.one(ctx, number)
}

func (c *Campaign) isOver(enough int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed || len(c.sum.Findings) > 0 || c.sum.Count >= enough
}

func (c *Campaign) one(ctx context.Context, number uint64) {
	r, err := c.World(ctx, number)
	c.mu.Lock()
	defer c.mu.Unlock()
	name := c.Flags(number)
	if err != nil {
		c.failed = true
		if ctx.Err() == nil { // not interrupted
			_, _ = c.Notes.Write(r.Trace)
			c.say("%s: %v", name, err)
		}
		return
	}
	c.worlds++
	c.sum.add(r)
	if c.Verbose {
		c.say("%s: %s", name, c.describe(r))
	}
	if len(r.Findings) == 0 {
		return
	}
	_, _ = c.Notes.Write(r.Trace)
	c.say("findings in %s: %s", name, c.describe(r))
	for _, f := range r.Findings[:min(len(r.Findings), mostShown)] {
		c.say("%s: %s", name, f)
	}
	c.say("again: go run ./test/cmd/%s %s%s", c.Name, name, c.Again)
}

// mostShown is the number of findings of a world that are printed.
const mostShown = 20

func (c *Campaign) describe(r Report) string {
	s := fmt.Sprintf("%d %s, %d events", r.Count, c.Unit, r.Events)
	if r.Virtual > 0 {
		s += fmt.Sprintf(", %v by its own clock", r.Virtual.Round(time.Second))
	}
	if r.Plan != "" {
		s += ": " + r.Plan
	}
	return s
}

// progress prints a line every ten seconds, until stop is called.
func (c *Campaign) progress() (stop func()) {
	ticker, done := time.NewTicker(10*time.Second), make(chan struct{})
	var wait sync.WaitGroup
	wait.Add(1)
	go func() {
		defer wait.Done()
		for {
			select {
			case <-ticker.C:
				c.mu.Lock()
				c.say("%s, %d findings", c.all(), len(c.sum.Findings))
				c.mu.Unlock()
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		wait.Wait()
	}
}

// all describes the worlds so far.
func (c *Campaign) all() string {
	return fmt.Sprintf("%v: %d worlds, %s", time.Since(c.begun).Round(time.Second), c.worlds, c.describe(c.sum))
}

func (c *Campaign) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.Notes, c.Name+": "+format+"\n", args...)
}

// End prints what happened, and returns the exit code: 1 if a world has failed or found something.
func (c *Campaign) End() (code int) {
	c.say("%s: %s", c.all(), Ranking(c.sum.Seen))
	if c.failed || len(c.sum.Findings) > 0 {
		return 1
	}
	return 0
}

// Count returns the sum of the counts of all worlds.
func (c *Campaign) Count() int { return c.sum.Count }

// Found returns the number of findings of a kind in all worlds.
func (c *Campaign) Found(k Kind) int { return c.sum.found(k) }
