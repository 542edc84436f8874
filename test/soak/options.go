package soak

import (
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/draw"
)

// repositoryOptions draw the settings of a writer's repository, one function for each setting.
// Writers of one world share tables, so their settings must be compatible.
var repositoryOptions = []func(*rand.Rand, *repository.Config){
	func(r *rand.Rand, c *repository.Config) {
		remainder := r.Uint64N(3)
		c.Snapshots = draw.Pick[repository.SnapshotPolicy](r,
			repository.Every(1), repository.Every(3), repository.Every(10), repository.Every(100), repository.Never,
			func(c repository.Commit) bool { return c.After%3 == remainder })
	},
	func(r *rand.Rand, c *repository.Config) { c.MaxAttempts = draw.Pick(r, 1, 3, 0) },
	func(r *rand.Rand, c *repository.Config) { c.Cache = draw.Pick(r, 0, 2, 10) },
	func(r *rand.Rand, c *repository.Config) { c.SnapshotSchema = draw.Pick[uint64](r, 0, 0, 0, 1) },
	func(r *rand.Rand, c *repository.Config) {
		c.Redundancy = draw.Pick(r, nil, &repository.Redundancy{}, &repository.Redundancy{Keep: 3})
	},
}

// journalOptions draw the settings of a writer's journal.
var journalOptions = []func(*rand.Rand, *journal.Config){
	// The budget allows one attempt or all of them. A budget in between would depend on the speed
	// of the machine.
	func(r *rand.Rand, c *journal.Config) { c.RetryBudget = draw.Pick(r, time.Nanosecond, patient, patient) },
}

// patient is a budget that is longer than all faults.
const patient = time.Hour

func drawRepository(r *rand.Rand) (c repository.Config) {
	for _, option := range repositoryOptions {
		option(r, &c)
	}
	return c
}

// sameSnapshots makes all repositories of a world use the same snapshots, if snapshots may replace
// removed events.
func sameSnapshots(c *repository.Config) {
	c.SnapshotSchema = 0
	for after := range uint64(3) {
		if c.Snapshots(repository.Commit{After: 300 + after}) {
			return
		}
	}
	c.Snapshots = repository.Every(3) // it was Never
}

func drawJournal(r *rand.Rand) (c journal.Config) {
	for _, option := range journalOptions {
		option(r, &c)
	}
	return c
}
