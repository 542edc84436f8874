package view_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/examples/planningpoker/view"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// patience limits a failing test. It is not a claim about speed.
const patience = 2 * time.Minute

const (
	table = "Room"
	id    = "01J00000000000000000000RXM"
)

var deck = []string{"1", "2", "3"}

// fixture is a database with one room and its view. Rooms are open for an hour.
type fixture struct {
	t       *testing.T
	client  *dynamodb.Client
	now     func() time.Time
	view    *view.DAO
	journal *journal.Journal
	rooms   *repository.Repository[room.Room]
	version uint64
}

func setup(t *testing.T) *fixture {
	t.Helper()
	return setupOn(t, testdb.Client(t), time.Now)
}

// setupWithFaults is setup with a clock that only the test moves.
func setupWithFaults(t *testing.T, options ...dynamotest.Option) (*fixture, *dynamotest.DB) {
	t.Helper()
	db := dynamotest.New(t, options...)
	db.Clock().Freeze()
	return setupOn(t, db.Client(), db.Clock().Now), db
}

func setupOn(t *testing.T, client *dynamodb.Client, now func() time.Time) *fixture {
	t.Helper()
	f := &fixture{t: t, client: client, now: now, view: view.NewDAO(client, table, now)}
	require.NoError(t, f.view.CreateTable(t.Context()))
	config := journal.Config{Layout: journal.Packed, Shards: 1}
	require.NoError(t, journal.Create(t.Context(), client, config))
	var err error
	f.journal, err = journal.Open(t.Context(), client, config)
	require.NoError(t, err)
	f.rooms, err = repository.New(f.journal, room.Definition, repository.Config{})
	require.NoError(t, err)
	f.execute(room.Open("Sprint 12", "", deck, time.Hour, now()))
	return f
}

func (f *fixture) execute(commands ...room.Decision) {
	f.t.Helper()
	for _, command := range commands {
		r, err := f.rooms.Execute(f.t.Context(), id, command)
		require.NoError(f.t, err)
		f.version = r.Version
	}
}

func (f *fixture) join(user string) room.Decision { return room.Join(user, "Name of "+user, f.now()) }

// project runs a consumer group from the first event until the view has all events.
func (f *fixture) project(group string, v *view.DAO) projection.Stats {
	f.t.Helper()
	p, err := projection.New(f.client, projection.Config{Definitions: []aggregate.AnyDefinition{room.Definition}}, v.Reactions()...)
	require.NoError(f.t, err)
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: f.journal, ConsumerGroup: group}, nil)
	require.NoError(f.t, err)
	defer func() { require.NoError(f.t, sub.Close()) }()
	messages, err := sub.Subscribe(f.t.Context(), room.Definition.Type())
	require.NoError(f.t, err)
	for deadline := time.After(patience); ; {
		select {
		case msg := <-messages:
			require.NoError(f.t, p.Handle(msg))
			msg.Ack()
			if _, number, _ := subscriber.AggregateFromContext(msg.Context()); number == f.version {
				return p.Stats()
			}
		case <-deadline:
			require.FailNow(f.t, "an event did not come", "of %d", f.version)
		}
	}
}

// show projects and returns the room.
func (f *fixture) show() view.Room {
	f.t.Helper()
	f.project("view", f.view)
	r, err := f.view.GetRoom(f.t.Context(), id)
	require.NoError(f.t, err)
	return r
}

// rows returns all rows of the table, by sort key.
func (f *fixture) rows(table string) map[string]map[string]types.AttributeValue {
	f.t.Helper()
	out, err := f.client.Scan(f.t.Context(), &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	require.NoError(f.t, err)
	rows := map[string]map[string]types.AttributeValue{}
	for _, item := range out.Items {
		rows[item["item_key"].(*types.AttributeValueMemberS).Value] = item
	}
	return rows
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// who returns the texts of the users of a room, in their order.
func who(users []view.User) (all [][2]string) {
	for _, u := range users {
		all = append(all, [2]string{u.UserID, u.Card})
	}
	return all
}
