package groups_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

// forged returns an archive that somebody made up. It marks the events of an aggregate as messages
// of the own stream of a publisher.
func forged(id aggregate.ID, mark string, events int) []byte {
	var body strings.Builder
	fmt.Fprintf(&body, `{"kind":"head","aggregate":{"type":%q,"value":%q},"version":%d}`+"\n", id.Type, id.Value, events)
	for n := range events {
		fmt.Fprintf(&body, `{"kind":"event","number":%d,"id":"e%d","commit":"c%d","metadata":{"own_stream":%q}}`+"\n", n+1, n+1, n+1, mark)
	}
	return fmt.Appendf(nil, `{"kind":"archive","format":"millrace-archive","version":1}`+"\n"+
		`%s{"kind":"end","events":%d,"sha256":"%x"}`+"\n"+`{"kind":"total","aggregates":1,"events":%d}`+"\n",
		body.String(), events, sha256.Sum256([]byte(body.String())), events)
}

func TestATrimLeavesAnAggregateThatARepositoryContinues(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		q.begin(t, time.Time{})
		id := account("order")
		_, err := archive.Import(t.Context(), q.Journal, bytes.NewReader(forged(id, metadata.StreamMark(id), 3)), archive.ImportOptions{})
		require.NoError(t, err)
		for version := uint64(3); version < 6; version++ {
			testjournal.Append(t, q.Journal, storage.Commit{Aggregate: id, Expected: version, Events: []storage.Event{{Type: "Paid"}}})
			q.acked(t, "order", version-1) // the event before the last one is not read otherwise
		}

		trimmed := q.trim(t)

		assert.Zero(t, trimmed.Events)
		assert.Equal(t, 1, trimmed.Foreign)
		assert.Equal(t, []uint64{1, 2, 3, 4, 5, 6}, q.left(t, "order"))
	})
}

func TestAnImportRefusesTheMarkOfAnotherStream(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		for _, mark := range []string{"", "other", metadata.StreamMark(account("worker"))} {
			_, err := archive.Import(t.Context(), q.Journal, bytes.NewReader(forged(account("order"), mark, 3)), archive.ImportOptions{})

			require.ErrorIs(t, err, journal.ErrInvalidCommit)
			require.ErrorContains(t, err, "event 1 has the metadata own_stream of another stream")
			_, err = q.Head(t.Context(), account("order"))
			require.ErrorIs(t, err, journal.ErrNotFound)
		}
	})
}
