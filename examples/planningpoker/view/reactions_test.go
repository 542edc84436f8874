package view_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/examples/planningpoker/view"
)

func TestTheViewShowsWhatHappenedInARoom(t *testing.T) {
	t.Parallel()
	f := setup(t)

	r := f.show()
	assert.Equal(t, []any{id, "Sprint 12", deck, 1, false, uint64(1)}, []any{r.RoomID, r.Name, r.Deck, r.Round, r.Revealed, r.Version})
	assert.WithinDuration(t, f.now().Add(time.Hour), r.ExpiresAt, time.Minute)
	assert.Empty(t, r.Users)

	f.execute(f.join("zoe"), f.join("ada"), f.join("bob"), room.Pick("ada", "2", 0, f.now()))
	r = f.show()
	assert.Equal(t, [][2]string{{"zoe", ""}, {"ada", "2"}, {"bob", ""}}, who(r.Users), "in the order in which they joined")
	assert.Equal(t, "Name of zoe", r.Users[0].Name)
	assert.False(t, r.Revealed)

	f.execute(room.Leave("zoe", f.now()), room.Pick("bob", "3", 0, f.now()))
	r = f.show()
	assert.Equal(t, [][2]string{{"ada", "2"}, {"bob", "3"}}, who(r.Users))
	assert.True(t, r.Revealed)
	assert.Equal(t, 1, r.Round)

	f.execute(room.Refresh("ada", 0, "", f.now()), f.join("zoe"), room.Kick("ada", "bob", f.now()))
	r = f.show()
	assert.Equal(t, [][2]string{{"bob", ""}, {"zoe", ""}}, who(r.Users), "who returns comes behind the others")
	assert.False(t, r.Revealed)
	assert.Equal(t, 2, r.Round)
	assert.Equal(t, f.version, r.Version)
}

func TestTheTableIsLaidOutAsItsDesignSays(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.execute(f.join("ada"), f.join("bob"), f.join("eve"), room.Leave("bob", f.now()), room.Kick("eve", "ada", f.now()))
	expiry := &types.AttributeValueMemberN{Value: strconv.FormatInt(f.show().ExpiresAt.Unix(), 10)}

	rows := f.rows(table)
	require.Len(t, rows, 4)
	for key, want := range map[string][2]string{id: {"ROOM", "PICKING"}, "ada": {"USER", "ACTIVE"}, "bob": {"USER", "LEAVED"}, "eve": {"USER", "LEAVED"}} {
		assert.Equal(t, text(id), rows[key]["room_id"], key)
		assert.Equal(t, text(want[0]), rows[key]["item_type"], key)
		assert.Equal(t, text(want[1]), rows[key]["status"], key)
		assert.Equal(t, expiry, rows[key]["expiration_unix_timestamp"], key)
	}
	ttl, err := f.client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(table)})
	require.NoError(t, err)
	assert.Equal(t, "expiration_unix_timestamp", aws.ToString(ttl.TimeToLiveDescription.AttributeName))
	require.NoError(t, f.view.CreateTable(t.Context()), "a second time")
}

// A second group writes every event to the same table again.
func TestOldEventsThatComeAgainChangeNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.execute(f.join("ada"), f.join("bob"), room.Pick("ada", "1", 0, f.now()), room.Leave("ada", f.now()), f.join("ada"),
		room.Pick("ada", "2", 0, f.now()), room.Pick("bob", "3", 0, f.now()), room.Refresh("bob", 0, "", f.now()), room.Pick("bob", "1", 0, f.now()))
	f.project("view", f.view)
	before := f.rows(table)

	again := f.project("again", f.view)

	assert.Equal(t, before, f.rows(table))
	assert.Greater(t, again.Dropped, f.version, "every write must be left out")
}

func TestAnEventDoesNotBringBackARowThatHasExpired(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.execute(f.join("ada"), f.join("bob"))
	f.project("view", f.view)
	for _, expired := range []string{id, "ada"} {
		_, err := f.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: aws.String(table), Key: map[string]types.AttributeValue{"room_id": text(id), "item_key": text(expired)},
		})
		require.NoError(t, err)
	}

	f.execute(room.Pick("ada", "1", 0, f.now()), room.Pick("bob", "1", 0, f.now()), room.Refresh("ada", 0, "", f.now()), room.Leave("ada", f.now()))
	f.project("view", f.view)

	rows := f.rows(table)
	require.Len(t, rows, 1)
	assert.Contains(t, rows, "bob")
}

func TestWhoHasLeftIsNotUpdated(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.execute(f.join("ada"), f.join("bob"))
	f.project("view", f.view)
	_, err := f.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(table), Key: map[string]types.AttributeValue{"room_id": text(id), "item_key": text("ada")},
		UpdateExpression: aws.String("SET #s = :left"), ExpressionAttributeNames: map[string]string{"#s": "status"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":left": text("LEAVED")},
	})
	require.NoError(t, err)
	before := f.rows(table)

	f.execute(room.Pick("ada", "1", 0, f.now()), room.Pick("bob", "1", 0, f.now()))
	f.project("view", f.view)

	rows := f.rows(table)
	assert.Equal(t, before["ada"], rows["ada"])
	assert.Equal(t, text("1"), rows["bob"]["card"])
}

func TestARoomThatHasExpiredIsNotRebuilt(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.execute(f.join("ada"), room.Pick("ada", "1", 0, f.now()), room.Refresh("ada", 0, "", f.now()), room.Leave("ada", f.now()))
	rebuilt := view.NewDAO(f.client, "Rebuilt", func() time.Time { return f.now().Add(time.Hour) })
	require.NoError(t, rebuilt.CreateTable(t.Context()))

	f.project("rebuilt", rebuilt)

	assert.Empty(t, f.rows("Rebuilt"))
}
