//go:build unix

package chaos

import (
	"io"
	"time"

	"github.com/millrace-dev/millrace/journal"
)

// Config says what to run. Endpoint and Dir are required.
type Config struct {
	// Endpoint is the URL of a DynamoDB Local. Each run takes a database of its own there.
	Endpoint string
	// Dir is a folder for the logs of the groups and what members print.
	Dir string
	// Seed is what everything is drawn from.
	Seed uint64
	// Layout is that of the journal. Default: drawn from the seed.
	Layout journal.Layout
	// Duration is how long writers write. Default: 3 minutes. What they wrote is consumed for as
	// long as it takes after that.
	Duration time.Duration
	// Pause is how long each of the writers waits between commits, on average. Default: 250 ms.
	Pause time.Duration
	// Calm is the time between two harms, on average. Default: 700 ms.
	Calm time.Duration
	// Lease is the LeaseDuration of members. Default: 1.5 seconds.
	Lease time.Duration
	// Patience is how long nothing may move after the writers have stopped before what is left
	// counts as lost. Default: 45 seconds.
	Patience time.Duration
	// Members is how many processes a group has at most. Default: 4.
	Members int
	// Groups are those to run. Default: all, which are "plain" and "projection".
	Groups []string
	// Fault is what members do wrong on purpose.
	Fault Fault
	// Notes is told now and then how things stand. Nil discards.
	Notes io.Writer
}

func (c *Config) setDefaults() {
	duration := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	duration(&c.Duration, 3*time.Minute)
	duration(&c.Pause, 250*time.Millisecond)
	duration(&c.Calm, 700*time.Millisecond)
	duration(&c.Lease, 1500*time.Millisecond)
	duration(&c.Patience, 45*time.Second)
	if c.Layout == "" {
		c.Layout = []journal.Layout{journal.Packed, journal.Classic}[c.Seed%2]
	}
	if c.Members == 0 {
		c.Members = 4
	}
	if c.Groups == nil {
		c.Groups = []string{plain, projecting}
	}
	if c.Notes == nil {
		c.Notes = io.Discard
	}
}

const (
	// shards is how many parts members can share.
	shards = 6
	// trailingDelay is longer than writers repeat a commit (retryBudget).
	trailingDelay  = 3 * time.Second
	retryBudget    = time.Second
	commitInterval = 250 * time.Millisecond
	// behindAfter is short of the time for which some events are nacked, and not so short that none
	// holds back the cursor.
	behindAfter = 4 * time.Second
)
