package suite_test

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
	"github.com/stretchr/testify/assert"
)

// The database is killed when a third and when a half of ten thousand messages are published. Not parallel: messages have to come
// through within a minute of each other.
func TestPubSubReconnectsToADatabaseThatWasKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("publishes ten thousand messages, which takes a while")
	}
	if watermillRaces() {
		t.Skip("Watermill's TestReconnect has a data race of its own: it reads the list of published messages while another " +
			"goroutine appends to it. `make test` has that package compiled without the detector.")
	}
	db := startKillable(t)
	s := storeIn(t, db.client)
	stopRestarts := db.restartOnSignal(t)

	tests.TestReconnect(t,
		tests.TestContext{
			TestID: tests.NewTestID(),
			Features: tests.Features{
				GuaranteedOrder: true, Persistent: true,
				RestartServiceCommand: []string{"kill", "-HUP", strconv.Itoa(os.Getpid())},
			},
		},
		s.inOrder().pubSub,
	)

	assert.Equal(t, 2, stopRestarts(), "the database must have been killed twice")
}

// watermillRaces tells whether Watermill's tests are compiled with the race detector; see the Makefile.
func watermillRaces() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return settings["-race"] == "true" && !strings.Contains(settings["-gcflags"], "watermill/pubsub/tests=-race=false")
}
