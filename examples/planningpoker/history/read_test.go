package history_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/planningpoker/history"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

const id = "01J00000000000000000000RXM"

func open(t *testing.T, layout journal.Layout) *journal.Journal {
	t.Helper()
	client, config := testdb.Client(t), journal.Config{Shards: 1, Layout: layout}
	require.NoError(t, journal.Create(t.Context(), client, config))
	j, err := journal.Open(t.Context(), client, config)
	require.NoError(t, err)
	return j
}

// store commits events one by one. The definition is the current one or an older one.
func store[S any](t *testing.T, j *journal.Journal, definition aggregate.Definition[S], events ...aggregate.Event[S]) {
	t.Helper()
	rooms, err := repository.New(j, definition, repository.Config{IgnoreSnapshots: true})
	require.NoError(t, err)
	for _, e := range events {
		_, err := rooms.Execute(t.Context(), id, func(S) (aggregate.Events[S], error) { return aggregate.Events[S]{e}, nil })
		require.NoError(t, err)
	}
}

func TestTheHistoryIsReadInPages(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()
			j := open(t, layout)
			store(t, j, room.Definition, opened("first"), joined("a", "Ada"))
			for range history.Page + 10 {
				store(t, j, room.Definition, picked("a", "5"), room.Revealed{}, next(""))
			}

			newest, err := history.Read(t.Context(), j, id, 0)
			require.NoError(t, err)
			require.Len(t, newest, history.Page)
			assert.Equal(t, history.Page+10, newest[0].Number)
			assert.WithinDuration(t, time.Now(), newest[0].RevealedAt, time.Hour)
			assert.Equal(t, []history.Pick{{UserID: "a", Name: "Ada", Card: "5"}}, newest[0].Picks)

			older, err := history.Read(t.Context(), j, id, newest[history.Page-1].Number)
			require.NoError(t, err)
			require.Len(t, older, 10)
			assert.Equal(t, []any{10, 1, "first"}, []any{older[0].Number, older[9].Number, older[9].Title})

			none, err := history.Read(t.Context(), j, id, 1)
			require.NoError(t, err)
			assert.Empty(t, none)
		})
	}
}

// A program without stories stored these events.
type (
	roomV1   struct{}
	openedV1 struct {
		Name string `json:"name"`
	}
	joinedV1 struct {
		UserID string `json:"userId"`
		Name   string `json:"name"`
	}
	pickedV1 struct {
		UserID string `json:"userId"`
		Card   string `json:"card"`
	}
	revealedV1       struct{}
	tableRefreshedV1 struct {
		UserIDs []string `json:"userIds"`
	}
)

func (openedV1) EventType() string         { return "room.opened.v1" }
func (joinedV1) EventType() string         { return "room.joined.v1" }
func (pickedV1) EventType() string         { return "room.picked.v1" }
func (revealedV1) EventType() string       { return "room.revealed.v1" }
func (tableRefreshedV1) EventType() string { return "room.table-refreshed.v1" }

func (openedV1) Apply(*roomV1)         {}
func (joinedV1) Apply(*roomV1)         {}
func (pickedV1) Apply(*roomV1)         {}
func (revealedV1) Apply(*roomV1)       {}
func (tableRefreshedV1) Apply(*roomV1) {}

func TestARoomFromBeforeThereWereStoriesHasAHistory(t *testing.T) {
	t.Parallel()
	j := open(t, journal.Classic)
	before := aggregate.Define[roomV1]("room", openedV1{}, joinedV1{}, pickedV1{}, revealedV1{}, tableRefreshedV1{})
	store(t, j, before, openedV1{"Sprint 12"}, joinedV1{"a", "Ada"}, pickedV1{"a", "5"}, revealedV1{}, tableRefreshedV1{[]string{"a"}})
	store(t, j, room.Definition, picked("a", "8"), next("Log in"))

	rounds, err := history.Read(t.Context(), j, id, 0)

	require.NoError(t, err)
	require.Len(t, rounds, 2)
	assert.Equal(t, history.Round{Number: 2}, rounds[0])
	assert.Equal(t, []any{1, "", []history.Pick{{UserID: "a", Name: "Ada", Card: "5"}}}, []any{rounds[1].Number, rounds[1].Title, rounds[1].Picks})
}

func TestARoomThatWasNeverOpenedHasNoHistory(t *testing.T) {
	t.Parallel()
	_, err := history.Read(t.Context(), open(t, journal.Classic), id, 0)
	assert.ErrorIs(t, err, room.ErrNotFound)
}

// fake is a journal with one room.
type fake struct {
	version uint64
	records []*journal.Record
	read    *int
	err     error
}

func (f fake) Version(context.Context, aggregate.ID) (uint64, error) { return f.version, nil }

func (f fake) Events(context.Context, aggregate.ID, uint64, uint64) iter.Seq2[*journal.Record, error] {
	return func(yield func(*journal.Record, error) bool) {
		for _, record := range f.records {
			*f.read++
			if !yield(record, nil) {
				return
			}
		}
		if f.err != nil {
			yield(nil, f.err)
		}
	}
}

func TestARoomInWhichTooMuchHappenedIsNotReplayed(t *testing.T) {
	t.Parallel()
	read := 0
	_, err := history.Read(t.Context(), fake{version: 20_001, read: &read}, id, 0)
	require.ErrorIs(t, err, history.ErrTooLong)
	assert.Zero(t, read)
	_, err = history.Read(t.Context(), fake{version: 20_000, read: &read}, id, 0)
	require.NoError(t, err)
}

func TestAnOlderPageReadsNoEventsOfLaterRounds(t *testing.T) {
	t.Parallel()
	read := 0
	f := fake{version: 4, read: &read}
	for _, e := range []room.Event{opened("first"), next("second"), next("third"), next("")} {
		encoded, err := room.Definition.Encode(e)
		require.NoError(t, err)
		f.records = append(f.records, &journal.Record{EventType: encoded.Type, Payload: encoded.Payload})
	}
	rounds, err := history.Read(t.Context(), f, id, 2)
	require.NoError(t, err)
	assert.Equal(t, []history.Round{{Number: 1, Title: "first"}}, rounds)
	assert.Equal(t, 2, read)
}

func TestAHistoryThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	read, broken := 0, errors.New("no answer")
	_, err := history.Read(t.Context(), fake{version: 1, read: &read, err: broken}, id, 0)
	require.ErrorIs(t, err, broken)
	unknown := []*journal.Record{{EventType: "room.painted.v1", Payload: []byte(`{}`)}}
	_, err = history.Read(t.Context(), fake{version: 1, read: &read, records: unknown}, id, 0)
	require.ErrorAs(t, err, new(*aggregate.UnknownEventError))
}
