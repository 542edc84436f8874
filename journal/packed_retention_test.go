package journal_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// twoRetentions opens a packed journal as a program that keeps command ids for an hour, and as one
// that keeps them forever.
func twoRetentions(t *testing.T) (hour, forever store, db *dynamotest.DB) {
	t.Helper()
	hour, db = inMemory(t, journal.Config{Layout: journal.Packed, CommandRetention: time.Hour})
	forever = store{client: hour.client}
	forever.Engine = hour.through(t, hour.client, func(c *journal.Config) { c.CommandRetention = 0 })
	return hour, forever, db
}

// waysToKeep are the ways in which the ids of the commands "0" to "n-1" leave their commits. Each
// executes n commands through one program, waits, and then writes through another.
var waysToKeep = map[string]struct {
	n    int
	keep func(t *testing.T, first store, wait func(), then store) (version int)
}{
	"a snapshot": {1, func(t *testing.T, first store, wait func(), then store) int {
		first.executeAll(t, 1)
		wait()
		then.commitSnapshot(t, user("ada"), 1, "two")
		return 2
	}},
	"a snapshot after another": {1, func(t *testing.T, first store, wait func(), then store) int {
		first.executeAll(t, 1)
		first.commitSnapshot(t, user("ada"), 1, "two")
		wait()
		then.commitSnapshot(t, user("ada"), 2, "three")
		return 3
	}},
	"a commit of several items": {1, func(t *testing.T, first store, wait func(), then store) int {
		large := events(1, 2)
		large[0].Payload, large[1].Payload = make([]byte, 300<<10), make([]byte, 300<<10)
		mustAppend(t, first, storage.Commit{Aggregate: user("ada"), Events: large, CommandID: "0"})
		wait()
		then.commitSnapshot(t, user("ada"), 2, "three")
		return 3
	}},
	"guards": {200, func(t *testing.T, first store, wait func(), then store) int {
		first.executeAll(t, 200)
		then.commitSnapshot(t, user("ada"), 200, "201")
		wait()
		then.commitSnapshot(t, user("ada"), 201, "202")
		return 202
	}},
	"a commit after commands without events": {1, func(t *testing.T, first store, wait func(), then store) int {
		_, err := first.execute(t, user("ada"), 0, 0, "0")
		require.NoError(t, err)
		wait()
		then.write(t, user("ada"), 1, 1)
		then.commitSnapshot(t, user("ada"), 1, "two")
		return 2
	}},
	"guards of commands without events": {150, func(t *testing.T, first store, wait func(), then store) int {
		for n := range 150 {
			_, err := first.execute(t, user("ada"), 0, 0, fmt.Sprint(n))
			require.NoError(t, err)
		}
		wait()
		then.write(t, user("ada"), 1, 1)
		then.commitSnapshot(t, user("ada"), 1, "two")
		return 2
	}},
}

// executeAll executes the commands "0" to "n-1" with an event each.
func (s store) executeAll(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		_, err := s.execute(t, user("ada"), i, 1, fmt.Sprint(i))
		require.NoError(t, err)
	}
}

func TestPackedASnapshotThatIsTooLargeWritesNoGuards(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, packed)
	s.executeAll(t, 130)
	calls := db.Record()

	receipt := mustAppend(t, s, storage.Commit{
		Aggregate: user("ada"), Expected: 130, Events: events(131, 1),
		Snapshot: &journal.Snapshot{Number: 131, Payload: make([]byte, storage.MaxItemBytes)},
	})

	require.ErrorAs(t, receipt.SnapshotError, new(*journal.TooLargeError))
	assert.Equal(t, 1, calls.Counts()["PutItem"])
}

func TestPackedNoProgramForgetsTheCommandsOfAnother(t *testing.T) {
	t.Parallel()
	for name, way := range waysToKeep {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hour, forever, db := twoRetentions(t)

			version := way.keep(t, forever, func() { db.Clock().Advance(2 * time.Hour) }, hour)

			for n := range way.n {
				_, err := forever.execute(t, user("ada"), version, 1, fmt.Sprint(n))
				require.ErrorAs(t, err, new(*journal.DuplicateCommandError), n)
			}
		})
	}
}

func TestPackedNoProgramKeepsTheCommandsOfAnotherLonger(t *testing.T) {
	t.Parallel()
	for name, way := range waysToKeep {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hour, forever, db := twoRetentions(t)

			way.keep(t, hour, func() { db.Clock().Advance(2 * time.Hour) }, forever)

			for n := range way.n {
				_, known, err := forever.Command(t.Context(), user("ada"), fmt.Sprint(n))
				require.NoError(t, err)
				assert.False(t, known, n)
			}
		})
	}
}

func TestPackedACommandIsKnownUntilItsRetentionEnds(t *testing.T) {
	t.Parallel()
	for name, way := range waysToKeep {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hour, forever, db := twoRetentions(t)

			way.keep(t, hour, func() { db.Clock().Advance(time.Hour - time.Millisecond) }, forever)

			for n := range way.n {
				forever.requireKnown(t, user("ada"), fmt.Sprint(n))
			}
		})
	}
}
