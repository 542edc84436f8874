package process_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

func TestManagersShareWhatIsDue(t *testing.T) {
	t.Parallel()
	const due, managers = 300, 10
	db := dynamotest.New(t)
	client := db.Client()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 1}))
	require.NoError(t, process.CreateTable(t.Context(), client, ""))
	j, err := journal.Open(t.Context(), client, journal.Config{})
	require.NoError(t, err)
	w := &world{t: t, client: client, j: j, now: time.UnixMilli(1_700_000_000_000)}
	m := w.manager(client, w.config())
	for n := range due {
		require.NoError(t, m.Handle(event(t.Context(), fmt.Sprint("e", n), fmt.Sprint("o", n), OrderPlaced{Total: 5})))
	}
	w.pass(deadline)

	recording := db.Record()
	var all sync.WaitGroup
	for range managers {
		other := w.manager(client, w.config())
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
		if call.Operation == "UpdateItem" {
			leases++
		}
	}
	t.Logf("%d leases", leases)
	assert.Less(t, leases, 2*due, "of which %d are needed", due)
}

func TestTheNumberOfQueuesGrows(t *testing.T) {
	t.Parallel()
	w := setup(t)
	more := w.config()
	more.Queues = 4
	before, after := w.manager(w.client, w.config()), w.manager(w.client, more)
	for n := range 20 {
		m := before
		if n%2 == 0 {
			m = after
		}
		require.NoError(t, m.Handle(event(t.Context(), fmt.Sprint("e", n), fmt.Sprint("o", n), OrderPlaced{Total: 5})))
	}
	w.pass(deadline)
	assert.Equal(t, 20, w.fire(after), "those that were set before, and those of a manager that does not know yet")
}
