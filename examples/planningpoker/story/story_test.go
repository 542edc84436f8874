// Package story plays planning poker through its REST API under difficult conditions, and compares
// the table Room with a replay of the journal.
package story_test

import (
	"context"
	"flag"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/examples/planningpoker/service"
	"github.com/millrace-dev/millrace/internal/testdb"
)

// patience limits a failing test. It is not a claim about speed.
const patience = 2 * time.Minute

const rooms, users, commandsEach = 6, 5, 14

var seed = flag.Uint64("story.seed", 1, "decides who does what, and which requests fail")

func TestWhateverFailsTheRoomsShowWhatHappened(t *testing.T) {
	t.Parallel()
	t.Logf("-story.seed=%d", *seed)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	db := testdb.Client(t)
	truth, err := service.Open(ctx, db, service.Config{}) // by a client without faults
	require.NoError(t, err)
	faults := newFaultMix(*seed)
	servers := start(t, db, faults)
	play := newPlay(t, servers, *seed)
	play.open(ctx)

	watching, stop := context.WithCancel(ctx)
	defer stop()
	var watchers sync.WaitGroup
	for _, r := range play.rooms {
		watchers.Add(1)
		go func() {
			defer watchers.Done()
			r.watch(watching)
		}()
	}
	played := make(chan struct{})
	go func() {
		defer close(played)
		play.everybody(ctx)
	}()
	all := rooms * users * commandsEach
	play.after(all/4, func() { servers.restart(ctx, 0) })
	play.after(all/2, func() {
		// Every event of these rooms is delivered again.
		for _, r := range play.rooms[:2] {
			assert.NoError(t, truth.Groups().ResetAggregate(ctx, service.ViewGroup, roomAggregate(r.id), 0))
		}
	})
	play.after(3*all/4, func() { servers.crash(ctx, 1) })
	<-played
	faults.calm.Store(true)

	want := map[string]replayed{}
	for _, r := range play.rooms {
		want[r.id] = replay(t, truth, r.id)
		wait, cancel := context.WithTimeout(ctx, patience)
		require.NoError(t, truth.WaitShown(wait, r.id, want[r.id].version), "the view must get to the end")
		cancel()
		r.waitShown(ctx, want[r.id].version)
	}
	stop()
	watchers.Wait()
	compare(t, db, play, want)
	compareReplies(t, play, want)
	compareHistories(t, play, want)

	again := againFromTheBeginning(t, db)
	compare(t, db, play, want)

	assert.Positive(t, faults.failed(), "requests must fail")
	assert.Positive(t, faults.hidden.Load(), "events must come late")
	assert.Positive(t, play.refused.Load(), "commands must be refused")
	assert.Eventually(t, func() bool { return servers.duplicates() > 0 }, patience, 10*time.Millisecond, "old events must be handled again")
	writes := 0
	for _, r := range want {
		writes += r.writes
	}
	assert.GreaterOrEqual(t, again.Dropped, uint64(writes), "every write of events that come again must be left out")
	t.Logf("%d commands, %d refused, %d sent again; %d requests failed, %d events hidden; %d writes of old events dropped",
		play.done.Load(), play.refused.Load(), play.repeated.Load(), faults.failed(), faults.hidden.Load(), servers.duplicates())
}

func TestARoomThatEndedIsStillWholeInTheJournal(t *testing.T) {
	t.Parallel()
	db := testdb.Client(t)
	truth, err := service.Open(t.Context(), db, service.Config{})
	require.NoError(t, err)
	servers := start(t, db, newFaultMix(*seed))
	play := newPlay(t, servers, *seed)
	play.open(t.Context())
	later := func() time.Time { return time.Now().Add(48 * time.Hour) }
	late, err := service.Start(t.Context(), db, service.Config{Now: later, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { require.NoError(t, late.Close()) }()

	for _, r := range play.rooms {
		_, err := late.View.GetRoom(t.Context(), r.id)
		require.ErrorIs(t, err, room.ErrExpired)
		assert.Len(t, replay(t, truth, r.id).state.Members, users)
	}
}
