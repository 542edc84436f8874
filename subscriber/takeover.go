package subscriber

import (
	"context"
	"errors"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// start takes the shard over: its cursor, and the list of aggregates that former owners have left
// behind. It reads and writes nothing of these aggregates: each has its turn in the lanes, after
// those that have not failed, and is tried again by itself.
func (sh *shard) start(ctx context.Context) error {
	begin := int64(0)
	if !sh.since.IsZero() {
		begin = max(0, sh.since.UnixMilli())
	}
	var progress checkpoint.Progress
	if !sh.fresh {
		once, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		var err error
		if progress, err = sh.checkpoint.Progress(once, sh.key); err != nil {
			return err
		}
	}
	if !progress.Cursor.IsZero() {
		begin = progress.Cursor.UnixMilli()
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if begin > 0 {
		sh.setCursors(eventlog.Cursor{OccurredAt: begin})
	}
	sh.settled, sh.saved = begin, begin
	sh.swept, sh.savedSwept = progress.Swept, progress.Swept
	if sh.swept.IsZero() {
		sh.swept = sh.now() // reading the tail from its beginning shows as much
	}
	for _, b := range progress.Behind {
		sh.inherit(b)
	}
	return nil
}

// inherit takes up an entry of the list. The caller holds mu.
func (sh *shard) inherit(b checkpoint.Behind) {
	st := sh.stream(b.Aggregate)
	st.hear(b.Head)
	st.entry, st.inherited = true, &b
	sh.unfinished[st] = struct{}{}
	if b.Parked == nil {
		st.pending, st.state = time.Now(), active
		sh.lanes.run(st, true)
		return
	}
	// Who has parked it never removes the entry, and nobody older can.
	st.state, st.listed = parked, true
	st.acked = b.Parked.Number - min(1, b.Parked.Number)
	if b.Epoch+1 == sh.epoch {
		st.inherited = nil // nobody has had the shard since
	} else {
		sh.parked = append(sh.parked, st)
	}
}

// takeOver finds out how far an aggregate goes that was listed: the cursor has passed what came
// since then, so its end has to say. The caller has claimed its position.
func (sh *shard) takeOver(st *stream) error {
	ctx, cancel := context.WithTimeout(sh.messageCtx, readTimeout)
	defer cancel()
	head, err := sh.headNow(ctx, st.id)
	if err != nil {
		return err
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st.hear(head)
	// A former owner removes the entry, perhaps late, if it had handled all that it knew of. So one
	// that names an event beyond the claimed position stays. Another one is written again, as no
	// cursor leads back to the events.
	st.listed = st.inherited.Head > st.acked
	st.led = st.head
	st.inherited = nil
	return nil
}

// headNow is the number of an aggregate's last event.
func (sh *shard) headNow(ctx context.Context, id aggregate.ID) (uint64, error) {
	version, err := sh.raw.Version(ctx, id)
	var deleted *journal.DeletedError
	switch {
	case errors.As(err, &deleted):
		return deleted.Version, nil
	case errors.Is(err, journal.ErrNotFound):
		return 0, nil
	default:
		return version, err
	}
}

// verifyAtOnce is how many parked aggregates are verified with each flush: one request where the
// positions are in the journal's own table.
const verifyAtOnce = 100

// verifyParked looks whether the group is beyond the events by which aggregates were parked. A
// former owner may have parked one late, without knowing that another went on.
func (sh *shard) verifyParked(ctx context.Context) {
	some := sh.unverified()
	if len(some) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	positions, err := sh.positions(ctx, some)
	if sh.isStopping() {
		return
	}
	sh.failed("Cannot verify which aggregates are parked, will try again", []error{err})
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, st := range some {
		position, known := positions[st.id]
		if !known {
			sh.parked = append(sh.parked, st)
			continue
		}
		if position < st.inherited.Parked.Number {
			st.inherited = nil
			continue
		}
		st.listed, st.state = false, active
		sh.lanes.run(st, true)
	}
}

// unverified takes some parked streams off those that are to be verified.
func (sh *shard) unverified() []*stream {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	n := min(verifyAtOnce, len(sh.parked))
	some := sh.parked[:n:n]
	sh.parked = sh.parked[n:]
	return some
}

// positions reads those of some streams: all that could be read, and an error for the rest.
func (sh *shard) positions(ctx context.Context, streams []*stream) (map[aggregate.ID]uint64, error) {
	positions := make(map[aggregate.ID]uint64, len(streams))
	if _, own := sh.config.Positions.(*tablePositions); own {
		ids := make([]aggregate.ID, len(streams))
		for i, st := range streams {
			ids[i] = st.id
		}
		found, err := sh.checkpoint.Positions(ctx, sh.key, ids, true)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			positions[id] = found[id] // 0 where there is none
		}
		return positions, nil
	}
	claimed := make([]uint64, len(streams))
	claims := make([]func() error, len(streams))
	for i, st := range streams {
		claims[i] = func() (err error) {
			claimed[i], _, err = sh.config.Positions.Claim(ctx, sh.group(), st.id, sh.epoch)
			return err
		}
	}
	errs := sh.inParallel(claims)
	for i, st := range streams {
		if errs[i] == nil {
			positions[st.id] = claimed[i]
		}
	}
	return positions, errors.Join(errs...)
}
