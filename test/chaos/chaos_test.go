//go:build unix

package chaos

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
	"github.com/millrace-dev/millrace/journal"
)

// TestMain runs a member of a run if this process is one.
func TestMain(m *testing.M) {
	if code, isMember := MemberMain(os.Stderr); isMember {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// run returns the report of a short run. The logs of a failed test are kept.
func run(t *testing.T, config Config) Report {
	t.Helper()
	config.Endpoint = dynamolocaltest.Endpoint(t)
	// t.TempDir would be removed after a failure too.
	dir, err := os.MkdirTemp("", "chaos-") //nolint:usetesting // t.TempDir is removed also after a failure
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the logs are in %s", dir)
			return
		}
		assert.NoError(t, os.RemoveAll(dir))
	})
	config.Dir = dir
	report, err := Run(t.Context(), config)
	require.NoError(t, err)
	t.Log(report.Summary(config.Seed), report.Seen)
	return report
}

func TestNothingIsLostOrReorderedOrDoneTwiceWhoeverIsKilled(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()
			report := run(t, Config{Seed: 1, Layout: layout, Duration: 12 * time.Second})
			assert.Empty(t, report.Findings)
			for _, what := range []string{"kills", "freezes", "closes", "commits", "nack"} {
				assert.NotZero(t, report.Seen[what], what)
			}
			assert.GreaterOrEqual(t, report.Deliveries, 2*report.Seen["events"])
		})
	}
}

func TestMembersThatAckBeforeTheyAreDoneAreFound(t *testing.T) {
	t.Parallel()
	config := faulty(AckFirst)
	config.Groups = []string{plain}
	finds(t, config, Lost)
}

func TestEffectsThatAreCommittedWithoutThePositionAreFound(t *testing.T) {
	t.Parallel()
	config := faulty(Unfenced)
	config.Groups = []string{projecting}
	finds(t, config, Effects)
}

// finds repeats runs until one finds the fault. Whether a kill hits a member in the moment in which
// it shows the fault is chance.
func finds(t *testing.T, config Config, what Kind) {
	t.Helper()
	const runs = 10
	for range runs {
		if run(t, config).Count(what) > 0 {
			return
		}
		config.Seed++
	}
	assert.Fail(t, "the fault must be found", "%d runs", runs)
}

// faulty returns a config with one member at a time, so that each kill hits the working one.
func faulty(f Fault) Config {
	return Config{
		Seed: 1, Fault: f, Members: 1, Duration: 5 * time.Second,
		Calm: 400 * time.Millisecond, Lease: 500 * time.Millisecond, Patience: 3 * time.Second,
	}
}
