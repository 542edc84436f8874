package scale

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

var full = flag.Bool("scale.full", false, "run the world that the other flags describe, and print what it takes")

var world = World{Payload: 200, Layout: journal.Classic}

func init() {
	flag.IntVar(&world.Shards, "scale.shards", 256, "logical shards")
	flag.IntVar(&world.Members, "scale.members", 50, "processes, each of which is a member of each group")
	flag.IntVar(&world.Groups, "scale.groups", 3, "consumer groups")
	flag.IntVar(&world.Aggregates, "scale.aggregates", 50_000, "aggregates")
	flag.IntVar(&world.Rate, "scale.rate", 10_000, "events in a second")
	flag.DurationVar(&world.Duration, "scale.duration", 30*time.Second, "how long writers commit, by the clock of the world")
	flag.IntVar(&world.Restarts, "scale.restarts", 0, "processes that are replaced one by one meanwhile")
	flag.Float64Var(&world.WriteUnits, "scale.write", 1_000, "write units of a partition in a second")
	flag.Float64Var(&world.ReadUnits, "scale.read", 3_000, "read units of a partition in a second")
}

func TestScale(t *testing.T) {
	if !*full {
		t.Skip("left to make scale")
	}
	// Worlds have many pointers. Less frequent garbage collection saves a quarter of the time.
	debug.SetGCPercent(1_000)
	debug.SetMemoryLimit(6 << 30)
	begin := time.Now()
	testdb.WithFakeTime(t, func(t *testing.T) {
		report, err := world.Run(t.Context())
		require.NoError(t, err)
		report.Print(os.Stdout)
		assert.Zero(t, report.Missing)
		assert.Zero(t, report.Wrong)
	})
	t.Logf("it took %v", time.Since(begin).Round(time.Second))
}

func TestAllComesInOrderThoughPartitionsAreExhausted(t *testing.T) {
	testdb.WithFakeTime(t, func(t *testing.T) {
		const shards, units = 2, 60
		report, err := World{
			Shards: shards, Members: 3, Groups: 2, Aggregates: 200, Rate: 150, Payload: 200, Duration: 5 * time.Second, Restarts: 1,
			Layout: journal.Classic, WriteUnits: units, ReadUnits: 3 * units,
		}.Run(t.Context())
		require.NoError(t, err)
		assert.Zero(t, report.Missing)
		assert.Zero(t, report.Wrong)
		assert.Positive(t, report.Throttled())

		// The partition of the events can use two units each: those of the time, and those of one
		// second before.
		most := shards * units / 2 * (report.Took.Seconds() + 1)
		events := float64(report.Commits.Count())
		assert.LessOrEqual(t, events, most)
		assert.Greater(t, events, most/2, "it is not the partitions that limit it")
		assert.InDelta(t, 2, report.Units[Place{Table: "journal"}].Write/events, 0.01)
		for _, group := range report.Groups {
			assert.GreaterOrEqual(t, group.Count(), int(events))
		}
	})
}
