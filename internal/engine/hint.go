package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Hint reports to the callers of WatchHints that an aggregate may have new events: a message from
// outside says so. version is what the message claims; 0 counts as 1. Nothing may rely on it.
func (j *Engine) Hint(id aggregate.ID, version uint64) { j.hints.watchers.notify(id, version) }

// WatchHints calls notify for each hint about an aggregate of the type. The rules of Watch apply.
func (j *Engine) WatchHints(aggregateType string, notify func(id aggregate.ID, version uint64)) (stop func()) {
	return j.hints.watchers.add(aggregateType, notify)
}

// EventOf returns the aggregate and the number of the event whose item in the journal table has
// that key. It returns the first event if the item has several. ok is false if the key cannot be
// one of an event. A key alone does not show that the event exists.
func (j *Engine) EventOf(key map[string]types.AttributeValue) (id aggregate.ID, number uint64, ok bool) {
	return j.Layout.EventOf(key)
}

// hints are the hints from outside, and how much readers of the tail rely on them.
type hints struct {
	watchers watchers
	// callers counts the callers of PollRarely, and rare is the last interval. distrusted is the
	// time until which polling is normal. Both are in nanoseconds.
	callers, rare, distrusted atomic.Int64
}

// PollRarely lets readers of the tail that find nothing poll only every interval, because hints
// announce the commits of other processes. stop ends that.
func (j *Engine) PollRarely(interval time.Duration) (stop func()) {
	j.hints.rare.Store(int64(interval))
	j.hints.callers.Add(1)
	return sync.OnceFunc(func() { j.hints.callers.Add(-1) })
}

// RarePoll returns the interval of PollRarely. It returns 0 if there is none, or while hints are
// distrusted.
func (j *Engine) RarePoll() time.Duration {
	if j.hints.callers.Load() == 0 || time.Now().UnixNano() < j.hints.distrusted.Load() {
		return 0
	}
	return time.Duration(j.hints.rare.Load())
}

// distrustFor is the time for which polling is normal after an event that no hint has announced.
const distrustFor = 5 * time.Minute

// DistrustHints restores normal polling for 5 minutes, because a reader has found an event of
// another process that no hint has announced.
func (j *Engine) DistrustHints() {
	j.hints.distrusted.Store(time.Now().Add(distrustFor).UnixNano())
}

// After yields the events of an aggregate after a number, in order and without a gap, with payloads
// as they are stored. The reads are strongly consistent. claimed is the version that a hint claims.
// After need not read beyond it. After yields nothing if the aggregate does not exist or was
// deleted, or if the number is inside a commit. In the classic layout it may yield events that were
// removed or whose aggregate was deleted, until their items are gone.
//
// found is the highest event that the reads have shown. It is at least the last one that was
// yielded.
func (j *Engine) After(ctx context.Context, id aggregate.ID, number, claimed uint64, yield func(*journaltype.Record) bool) (found uint64, err error) {
	if err = id.Validate(); err == nil {
		found, err = j.Layout.After(ctx, id, number, claimed, yield)
	}
	if err == nil || errors.Is(err, ErrStop) {
		return found, nil
	}
	return found, fmt.Errorf("read events after %d of %s: %w", number, id, err)
}
