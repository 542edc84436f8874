package view_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/repository"
)

func TestTheViewShowsTheStoryOfTheRound(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.execute(f.join("ada"), room.Refresh("ada", 1, "Log in", f.now()))
	assert.Equal(t, "Log in", f.show().Title)
	f.execute(room.Pick("ada", "1", 0, f.now()))
	assert.Equal(t, "Log in", f.show().Title)
	f.execute(room.Refresh("ada", 2, "", f.now()))
	assert.Empty(t, f.show().Title)
}

// A program without stories stored these events.
type (
	roomV1   struct{}
	openedV1 struct {
		Name      string    `json:"name"`
		Deck      []string  `json:"deck"`
		ExpiresAt time.Time `json:"expiresAt"`
	}
	tableRefreshedV1 struct {
		UserIDs []string `json:"userIds"`
	}
)

func (openedV1) EventType() string         { return "room.opened.v1" }
func (tableRefreshedV1) EventType() string { return "room.table-refreshed.v1" }
func (openedV1) Apply(*roomV1)             {}
func (tableRefreshedV1) Apply(*roomV1)     {}

func TestARoomFromBeforeThereWereStoriesIsShown(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const old = "01J00000000000000000000RXN"
	before, err := repository.New(f.journal, aggregate.Define[roomV1]("room", openedV1{}, tableRefreshedV1{}), repository.Config{})
	require.NoError(t, err)
	stored, err := before.Execute(t.Context(), old, func(roomV1) (aggregate.Events[roomV1], error) {
		return aggregate.Events[roomV1]{openedV1{"Sprint 11", deck, f.now().Add(time.Hour)}, tableRefreshedV1{}}, nil
	})
	require.NoError(t, err)
	f.version = stored.Version

	f.project("view", f.view)

	r, err := f.view.GetRoom(t.Context(), old)
	require.NoError(t, err)
	assert.Equal(t, []any{"Sprint 11", deck, 2, "", uint64(2)}, []any{r.Name, r.Deck, r.Round, r.Title, r.Version})
}
