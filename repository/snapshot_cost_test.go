package repository_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// Letter is an aggregate whose state is its last text.
type Letter struct{ Text string }

// Sent has an event of one size and a state of another.
type Sent struct {
	Text string
	Size int
}

func (Sent) EventType() string      { return "letter.sent.v1" }
func (e Sent) Apply(l *Letter)      { l.Text = incompressible(e.Size) }
func ofSizes(event, state int) Sent { return Sent{incompressible(event), state} }

var Letters = aggregate.Define[Letter]("letter", Sent{})

// snapshots executes commands that load, and returns the numbers of their snapshots.
func snapshots(t *testing.T, repo *repository.Repository[Letter], commands, event, state int) (numbers []uint64) {
	t.Helper()
	for range commands {
		before := repo.Stats().Snapshots
		a := mustExecute(t, repo, "1", always[Letter](ofSizes(event, state)))
		if repo.Stats().Snapshots > before {
			numbers = append(numbers, a.Version)
		}
	}
	assert.Zero(t, repo.Stats().SnapshotsLeftOut)
	return numbers
}

func letters(t *testing.T, layout journal.Layout, config repository.Config) *repository.Repository[Letter] {
	t.Helper()
	j := testjournal.New(t, dynamotest.New(t).Client(), journal.Config{Layout: layout, Shards: 4})
	return newRepository(t, store{journal: j}, Letters, config)
}

// The interval is about the square root of 10 times the write units of a snapshot, divided by the
// read units of a commit.
func TestPackedTheIntervalOfSnapshotsFollowsFromTheirCost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ event, state, least, most int }{
		"small states":              {200, 100, 10, 20},
		"larger events":             {4000, 100, 4, 7},
		"larger states":             {200, 10_000, 35, 70},
		"larger events and states":  {4000, 10_000, 14, 20},
		"a state larger than usual": {4000, 100_000, 42, 55},
	} {
		numbers := snapshots(t, letters(t, journal.Packed, repository.Config{}), 150, test.event, test.state)
		require.GreaterOrEqual(t, len(numbers), 2, name)
		for i := range numbers[1:] {
			interval := int(numbers[i+1] - numbers[i])
			assert.GreaterOrEqual(t, interval, test.least, "%s %v", name, numbers)
			assert.LessOrEqual(t, interval, test.most, "%s %v", name, numbers)
		}
	}
}

func TestPackedACommandThatHasNotLoadedStoresNoSnapshot(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Packed, Shards: 4})
	repo := testjournal.Repository(t, j, Letters, repository.Config{Cache: 1})
	assert.Empty(t, snapshots(t, repo, 100, 1000, 100))
	again := testjournal.Repository(t, j, Letters, repository.Config{Cache: 1})
	assert.Equal(t, []uint64{101}, snapshots(t, again, 20, 1000, 100), "the first command has loaded")
}

// Its loads do not become shorter by a snapshot, so a snapshot would seem to pay again and again.
func TestAProgramThatIgnoresSnapshotsStoresThemRarely(t *testing.T) {
	t.Parallel()
	for layout, want := range map[journal.Layout][]uint64{journal.Packed: {100}, journal.Classic: {1, 100}} {
		repo := letters(t, layout, repository.Config{IgnoreSnapshots: true})
		assert.Equal(t, want, snapshots(t, repo, 120, 1000, 100), layout)
	}
}

// Otherwise the programs would replace the snapshots of each other while one replaces the other.
func TestAnOlderProgramDoesNotReplaceANewerSnapshotForItsCost(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		j := testjournal.New(t, dynamotest.New(t).Client(), journal.Config{Layout: layout, Shards: 4})
		older := testjournal.Repository(t, j, Letters, repository.Config{SnapshotSchema: 1})
		newer := testjournal.Repository(t, j, Letters, repository.Config{SnapshotSchema: 2, Snapshots: repository.Every(50)})
		snapshots(t, newer, 51, 1000, 100)

		assert.Empty(t, snapshots(t, older, 20, 1000, 100), layout)
		assert.Contains(t, snapshots(t, older, 40, 1000, 100), uint64(100), layout)
	}
}

// A load of 1 MB is the most.
func TestPackedALargeHistoryGetsASnapshotWhateverItsCost(t *testing.T) {
	t.Parallel()
	const large = 250_000 // by cost alone it would be stored after 12 commits
	repo := letters(t, journal.Packed, repository.Config{})
	numbers := snapshots(t, repo, 12, 150_000, large)
	require.NotEmpty(t, numbers)
	assert.LessOrEqual(t, numbers[0], uint64(10))
}

// The head has the state of the first event. A state for which it does not grow is stored with each
// commit, and a larger one only after many events.
func TestClassicAStateIsStoredWhereTheHeadDoesNotGrow(t *testing.T) {
	t.Parallel()
	small := letters(t, journal.Classic, repository.Config{})
	assert.Len(t, snapshots(t, small, 20, 200, 100), 20)

	grown := letters(t, journal.Classic, repository.Config{Cache: 1})
	assert.Equal(t, []uint64{1}, snapshots(t, grown, 1, 200, 100))
	assert.Empty(t, snapshots(t, grown, 60, 200, 5000), "the head would grow by 5 KB")
	assert.Len(t, snapshots(t, grown, 5, 200, 100), 5, "also after a commit without a load")
}

func TestClassicALargerStateIsStoredOnceReplaysCostMore(t *testing.T) {
	t.Parallel()
	repo := letters(t, journal.Classic, repository.Config{})
	snapshots(t, repo, 1, 200, 100)
	// The head grows by two KB, for 30.5 read units, and an event of 10 KB costs 1.25.
	numbers := snapshots(t, repo, 60, 10_000, 2000)
	require.NotEmpty(t, numbers)
	assert.InDelta(t, 26, numbers[0], 4)
	assert.Greater(t, len(numbers), 30, "then the head does not grow any more")
}
