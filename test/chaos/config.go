//go:build unix

package chaos

import (
	"io"
	"time"

	"github.com/millrace-dev/millrace/journal"
)

// Config configures a run. Endpoint and Dir are required.
type Config struct {
	// Endpoint is the URL of a DynamoDB Local. Each run uses its own database there.
	Endpoint string
	// Dir is a folder for the logs of the groups and the output of members.
	Dir string
	// Seed decides all random choices.
	Seed uint64
	// Layout is the layout of the journal. Default: drawn from the seed.
	Layout journal.Layout
	// Duration is how long writers write. Default: 3 minutes. After that, the run lasts until all
	// events are consumed.
	Duration time.Duration
	// Pause is the average pause of each writer between commits. Default: 250 ms.
	Pause time.Duration
	// Calm is the average time between two disruptions. Default: 700 ms.
	Calm time.Duration
	// Lease is the LeaseDuration of members. Default: 1.5 seconds.
	Lease time.Duration
	// Patience is how long there may be no progress after the writers have stopped, before the
	// remaining events count as lost. Default: 45 seconds.
	Patience time.Duration
	// Members is the maximum number of processes of a group. Default: 4.
	Members int
	// Groups are the groups to run. Default: all, which are "plain" and "projection".
	Groups []string
	// Fault is the mistake that members make on purpose.
	Fault Fault
	// Notes receives a progress line from time to time. Nil discards it.
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
	// shards is the number of shards that members can share.
	shards = 6
	// trailingDelay is longer than the time for which writers repeat a commit (retryBudget).
	trailingDelay  = 3 * time.Second
	retryBudget    = time.Second
	commitInterval = 250 * time.Millisecond
	// behindAfter is shorter than the time for which some events are nacked, and long enough that
	// some of them hold back the cursor.
	behindAfter = 4 * time.Second
)
