package subscriber

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// The flusher can take a stream off the list of those behind while its lane has not come to rest
// yet. An event that comes just then must hold the cursor, as any other does.
func TestAStreamThatIsTakenOffTheListInTheMiddleOfALaneStillHoldsTheCursor(t *testing.T) {
	t.Parallel()
	sh := &shard{
		subscription: &subscription{
			config: Config{MaxInFlight: 1, BufferBytes: 1 << 20, BehindAfter: time.Hour, idleStreams: 10, maxUnstored: 10},
			budget: &budget{size: 1 << 20, lanes: 1}, lanes: &lanes{}, stats: &counters{},
		},
		streams: map[string]*stream{}, unfinished: map[*stream]struct{}{}, dirty: map[*stream]struct{}{}, trailing: newTrailingReads(0),
	}
	id := aggregate.ID{Type: "account", Value: "x"}
	event := func(number uint64, at int64) []*journal.Record {
		return []*journal.Record{{Aggregate: id, Number: number, OccurredAt: time.UnixMilli(at)}}
	}
	sh.hear(event(1, 10), fromTrailing)
	st := sh.streams["x"]
	sh.claimed(st, 0)
	sh.setListed(st, true)
	sh.ack(st, 1)
	st.position.stored.Store(1)
	sh.clean(st, 1)
	_, _, _, unlist := sh.progress()
	require.Equal(t, []*stream{st}, unlist)
	sh.setListed(st, false)

	sh.trailing = []trailingRead{{at: eventlog.Cursor{OccurredAt: 100}}}
	sh.hear(event(2, 50), fromTrailing)
	cursor, _, _, _ := sh.progress()
	assert.EqualValues(t, 50, cursor)
}
