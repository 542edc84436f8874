package view_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/examples/planningpoker/view"
)

// present returns the ids of the users who are present.
func present(t *testing.T, f *fixture) (all []string) {
	t.Helper()
	r, err := f.view.GetRoom(t.Context(), id)
	require.NoError(t, err)
	for _, u := range r.Users {
		if u.Present {
			all = append(all, u.UserID)
		}
	}
	return all
}

func attend(t *testing.T, f *fixture, user string) (arrived bool) {
	t.Helper()
	r, err := f.view.GetRoom(t.Context(), id)
	require.NoError(t, err)
	arrived, err = f.view.Attend(t.Context(), r, user)
	require.NoError(t, err)
	return arrived
}

func TestWhoHasNoPageOpenForAMinuteIsAway(t *testing.T) {
	t.Parallel()
	f, db := setupWithFaults(t)
	f.execute(f.join("ada"), f.join("bob"))
	f.show()
	assert.Equal(t, []string{"ada", "bob"}, present(t, f), "who joins is there")

	db.Clock().Advance(25 * time.Second)
	assert.False(t, attend(t, f, "ada"), "she was there before")
	db.Clock().Advance(25 * time.Second)
	assert.Equal(t, []string{"ada"}, present(t, f))
	db.Clock().Advance(time.Minute)
	assert.Empty(t, present(t, f))

	assert.True(t, attend(t, f, "bob"))
	assert.False(t, attend(t, f, "bob"))
	assert.Equal(t, []string{"bob"}, present(t, f))
	users, err := f.view.GetActiveUsers(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, []bool{false, true}, []bool{users[0].Present, users[1].Present})
}

func TestPresenceIsNotWrittenMoreOftenThanItIsNeeded(t *testing.T) {
	t.Parallel()
	f, db := setupWithFaults(t)
	f.execute(f.join("ada"))
	f.show()
	db.Clock().Advance(time.Minute)
	writes := db.Inject(dynamotest.Latency(0, 0), dynamotest.On("UpdateItem"), dynamotest.Table(table))
	for range 3 {
		attend(t, f, "ada")
	}
	assert.Equal(t, 1, writes.Fired())
}

func TestWhoIsNotInARoomLeavesNoTraceByLookingAtIt(t *testing.T) {
	t.Parallel()
	f, db := setupWithFaults(t)
	f.execute(f.join("ada"))
	f.show()
	db.Clock().Advance(time.Minute)
	seen, err := f.view.GetRoom(t.Context(), id)
	require.NoError(t, err)
	assert.False(t, attend(t, f, "eve"))
	f.execute(room.Leave("ada", f.now()))
	f.project("view", f.view)
	before := f.rows(table)

	_, err = f.view.Attend(t.Context(), seen, "ada") // on a page that does not know yet
	require.NoError(t, err)

	assert.Equal(t, before, f.rows(table))
}

func TestPresenceGivesWayToAnEvent(t *testing.T) {
	t.Parallel()
	f, db := setupWithFaults(t)
	f.execute(f.join("ada"))
	f.show()
	db.Clock().Advance(time.Minute)
	db.Inject(dynamotest.Conflict(), dynamotest.On("UpdateItem"), dynamotest.Table(table), dynamotest.Times(1))
	assert.False(t, attend(t, f, "ada"))
	assert.Empty(t, present(t, f))
	assert.True(t, attend(t, f, "ada"), "with the next state of the room")
}

func TestEventsLeavePresenceAsItIs(t *testing.T) {
	t.Parallel()
	f, db := setupWithFaults(t)
	f.execute(f.join("ada"), f.join("bob"))
	f.show()
	db.Clock().Advance(time.Minute)
	attend(t, f, "ada")
	f.execute(room.Pick("ada", "1", 0, f.now()), room.Pick("bob", "1", 0, f.now()), room.Refresh("ada", 0, "", f.now()))
	f.show()
	assert.Equal(t, []string{"ada"}, present(t, f))
}

func TestARoomIsShownToEndSoonTenMinutesBefore(t *testing.T) {
	t.Parallel()
	f, db := setupWithFaults(t)
	at := db.Clock().Now()
	f.show()
	for before, want := range map[time.Duration]bool{11 * time.Minute: false, 9 * time.Minute: true} {
		then := view.NewDAO(f.client, table, func() time.Time { return at.Add(time.Hour - before) })
		r, err := then.GetRoom(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, want, r.EndsSoon, before)
	}
}
