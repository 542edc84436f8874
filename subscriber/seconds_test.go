package subscriber_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// Events are dated back to the beginning of their second, and so before the group began.
func TestAGroupThatStartsNowMissesNothingInAJournalOfSeconds(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 1, OccurredAtUnit: time.Second}))
	present := time.Now().Truncate(time.Second)
	config := quick(at(t, client, func() time.Time { return present.Add(300 * time.Millisecond) }))
	config.Start = subscriber.Now()
	_, messages := subscribe(t, config)
	write(t, at(t, client, func() time.Time { return present.Add(500 * time.Millisecond) }), "x", 0, 1)
	assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
}
