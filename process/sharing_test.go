package process_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

func TestManagersShareWhatIsDue(t *testing.T) {
	t.Parallel()
	for queues, layout := range map[int]journal.Layout{1: journal.Classic, 4: journal.Packed} {
		t.Run(fmt.Sprint(queues, " queues, ", layout), func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) { shareWhatIsDue(t, layout, queues) })
		})
	}
}

func shareWhatIsDue(t *testing.T, layout journal.Layout, queues int) {
	t.Helper()
	const due, managers = 300, 10
	db := dynamotest.New(t)
	client := db.Client()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 1, Layout: layout}))
	require.NoError(t, process.CreateTable(t.Context(), client, ""))
	j := testjournal.Open(t, client, journal.Config{})
	w := &world{t: t, client: client, j: j, now: time.UnixMilli(1_700_000_000_000)}
	m := w.withQueues(client, queues)
	for n := range due {
		require.NoError(t, m.Handle(event(t.Context(), fmt.Sprint("e", n), fmt.Sprint("o", n), OrderPlaced{Total: 5})))
	}
	w.pass(deadline)

	recording := db.Record()
	var all sync.WaitGroup
	for range managers {
		other := w.withQueues(client, queues)
		all.Add(1)
		go func() {
			defer all.Done()
			_, err := other.Fire(t.Context())
			assert.NoError(t, err)
		}()
	}
	all.Wait()
	recording.Stop()

	assert.Len(t, w.rejected(), due)
	leases := 0
	for _, call := range recording.Calls() {
		// Except in the table where the packed layout stores states.
		if call.Operation == "UpdateItem" && !slices.Contains(call.Tables, "snapshot") {
			leases++
		}
	}
	t.Logf("%d leases", leases)
	assert.Less(t, leases, 2*due, "of which %d are needed", due)
}
