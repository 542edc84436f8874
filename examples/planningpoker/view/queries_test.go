package view_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/examples/planningpoker/view"
	"github.com/millrace-dev/millrace/internal/testdb"
)

func TestWhoIsThereIsFoundUntilTheyLeave(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.execute(f.join("ada"), f.join("bob"), room.Pick("ada", "2", 0, f.now()), room.Leave("bob", f.now()))
	f.project("view", f.view)

	users, err := f.view.GetActiveUsers(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, [][2]string{{"ada", "2"}}, who(users))
	exists, err := f.view.ExistRoom(t.Context(), id)
	require.NoError(t, err)
	assert.True(t, exists)
	ada, err := f.view.GetUser(t.Context(), id, "ada")
	require.NoError(t, err)
	assert.Equal(t, []any{"ada", "Name of ada", "2", false}, []any{ada.UserID, ada.Name, ada.Card, ada.Left})
	bob, err := f.view.GetUser(t.Context(), id, "bob")
	require.NoError(t, err)
	assert.True(t, bob.Left)
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	f := setup(t)

	_, err := f.view.GetRoom(t.Context(), id)
	require.ErrorIs(t, err, room.ErrNotFound, "the view has not been told yet")
	exists, err := f.view.ExistRoom(t.Context(), id)
	require.NoError(t, err)
	assert.False(t, exists)
	users, err := f.view.GetActiveUsers(t.Context(), id)
	require.NoError(t, err)
	assert.Empty(t, users)
	f.project("view", f.view)
	for _, nobody := range []string{"ada", id, ""} {
		_, err := f.view.GetUser(t.Context(), id, nobody)
		assert.ErrorIs(t, err, view.ErrNoUser, "%q", nobody)
	}
}

func TestAQueryGoesOnToTheLastPage(t *testing.T) {
	t.Parallel()
	f, db := setupWithFaults(t)
	for n := range 7 {
		f.execute(f.join(fmt.Sprint("user-", n)))
	}
	f.execute(room.Leave("user-0", f.now()))
	f.project("view", f.view)
	db.Inject(dynamotest.SmallPages(1), dynamotest.On("Query"), dynamotest.Table(table))

	r, err := f.view.GetRoom(t.Context(), id)
	require.NoError(t, err)
	assert.Len(t, r.Users, 6)
	users, err := f.view.GetActiveUsers(t.Context(), id)
	require.NoError(t, err)
	assert.Len(t, users, 6)
	exists, err := f.view.ExistRoom(t.Context(), id)
	require.NoError(t, err)
	assert.True(t, exists)
}

func TestARoomThatHasExpiredIsGoneBeforeItIsDeletedAndStaysInTheJournal(t *testing.T) {
	t.Parallel()
	f, db := setupWithFaults(t, dynamotest.WithExpiryDelay(48*time.Hour))
	f.execute(f.join("ada"))
	f.project("view", f.view)

	db.Clock().Advance(time.Hour)
	require.Len(t, f.rows(table), 2, "the rows must be there for this test to mean something")
	_, err := f.view.GetRoom(t.Context(), id)
	require.ErrorIs(t, err, room.ErrExpired)
	exists, err := f.view.ExistRoom(t.Context(), id)
	require.ErrorIs(t, err, room.ErrExpired)
	assert.False(t, exists)
	users, err := f.view.GetActiveUsers(t.Context(), id)
	require.NoError(t, err)
	assert.Empty(t, users)
	_, err = f.view.GetUser(t.Context(), id, "ada")
	require.ErrorIs(t, err, view.ErrNoUser)

	db.Clock().Advance(48 * time.Hour)
	require.Empty(t, f.rows(table))
	_, err = f.view.GetRoom(t.Context(), id)
	require.ErrorIs(t, err, room.ErrNotFound)
	stored, err := f.rooms.Load(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, []string{"ada"}, stored.State.Members)
}

// The seed decides which rows of a transaction are written first.
func TestAQueryNeverShowsHalfAnEvent(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			f, db := setupWithFaults(t, dynamotest.WithSeed(seed))
			f.execute(f.join("ada"), f.join("bob"))
			f.project("view", f.view)
			f.execute(room.Pick("ada", "1", 0, f.now()))
			db.Inject(dynamotest.Tear(func(context.Context) {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				r, err := f.view.GetRoom(ctx, id)
				if err != nil {
					assert.ErrorIs(t, err, context.DeadlineExceeded, "it may wait for the rest")
					return
				}
				picked := [][2]string{{"ada", ""}, {"bob", ""}}
				if r.Version == f.version {
					picked[0][1] = "1"
				}
				assert.Equal(t, picked, who(r.Users), "at version %d", r.Version)
			}), dynamotest.On("TransactWriteItems"), dynamotest.Table(table), dynamotest.Times(1))

			assert.Equal(t, [][2]string{{"ada", "1"}, {"bob", ""}}, who(f.show().Users))
		})
	}
}

func TestWhoWaitsForAnEventSeesIt(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		f := setup(t)
		f.execute(f.join("ada"))
		f.project("view", f.view)

		require.NoError(t, f.view.WaitConsistent(t.Context(), id, f.version))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, f.view.WaitConsistent(ctx, id, f.version+1), context.DeadlineExceeded)
		require.NoError(t, f.view.WaitConsistent(t.Context(), "01J00000000000000000000RXN", 1), "nobody waits for a room that is gone")
	})
}
