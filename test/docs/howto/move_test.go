package howto_test

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
	"github.com/millrace-dev/millrace/journal/resolver"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/move"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

// deliveries counts the deliveries of each event to a group.
type deliveries struct {
	mu    sync.Mutex
	times map[string]int
}

func (d *deliveries) handle(msg *message.Message) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.times == nil {
		d.times = map[string]int{}
	}
	d.times[msg.UUID]++
	return nil
}

// use runs an App with the group labels while a command is executed, and until it was handled.
func use(t *testing.T, app *millrace.App, d *deliveries, id string, decide aggregate.Decision[shop.Order]) {
	t.Helper()
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	require.NoError(t, app.Handle(millrace.Group{Name: "labels", Topics: []string{"order"}}, d.handle))
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	order, err := orders.Execute(t.Context(), id, decide)
	require.NoError(t, err)
	require.NoError(t, app.Groups().WaitApplied(t.Context(), "labels", order.ID, order.Version))
	require.NoError(t, stop())
}

// copyTo moves the events of a journal to new tables in the packed layout.
func copyTo(t *testing.T, client *dynamodb.Client, from *journal.Journal) *journal.Journal {
	t.Helper()
	var file bytes.Buffer
	_, err := archive.Export(t.Context(), from, &file, archive.ExportOptions{})
	require.NoError(t, err)
	tables := journal.Config{Tables: journal.Tables{Journal: "shop-journal2", Snapshot: "shop-snapshot2", Checkpoint: "shop-checkpoint2"}}
	tables.Layout, tables.Shards = journal.Packed, 8
	require.NoError(t, journal.Create(t.Context(), client, tables))
	to, err := journal.Open(t.Context(), client, tables)
	require.NoError(t, err)
	_, err = archive.Import(t.Context(), to, &file, archive.ImportOptions{})
	require.NoError(t, err)
	return to
}

func TestAMoveDeliversEachEventOnce(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	classic, err := millrace.Open(t.Context(), client, millrace.Config{Prefix: "shop-", Journal: journal.Config{Layout: journal.Classic, Shards: 2}})
	require.NoError(t, err)
	var handled deliveries
	use(t, classic, &handled, "1", shop.Place("ada", 30))
	stopped := time.Now()
	copyTo(t, client, classic.Journal())

	packed, err := move.Open(t.Context(), client, stopped)
	require.NoError(t, err)
	use(t, packed, &handled, "1", shop.Ship)

	assert.Len(t, handled.times, 2)
	for id, times := range handled.times {
		assert.Equal(t, 1, times, id)
	}
}

func TestEventsOfAnotherProgramAreReadAfterTheMove(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	config := journal.Config{Layout: journal.Classic, Shards: 4, Classic: journal.ClassicOptions{Resolver: resolver.JSHash}}
	require.NoError(t, journal.Create(t.Context(), client, config))
	j, err := journal.Open(t.Context(), client, config)
	require.NoError(t, err)
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	require.NoError(t, err)
	msg := message.NewMessage(watermill.NewUUID(), []byte(`{"Customer":"ada","Total":30}`))
	msg.Metadata.Set(publisher.AggregateIDKey, "1") // and no type
	require.NoError(t, p.Publish("order", msg))
	require.NoError(t, p.Close())
	copyTo(t, client, j)

	moved, err := journal.Open(t.Context(), client, journal.Config{
		Tables:    journal.Tables{Journal: "shop-journal2", Snapshot: "shop-snapshot2", Checkpoint: "shop-checkpoint2"},
		EventType: func(*journal.Record) (string, error) { return "order.placed.v1", nil },
	})
	require.NoError(t, err)
	orders, err := repository.New(moved, shop.Orders, repository.Config{})
	require.NoError(t, err)
	order, err := orders.Load(t.Context(), "1")
	require.NoError(t, err)
	assert.Equal(t, shop.Order{Customer: "ada", Total: 30}, order.State)
}

// topics counts the aggregates and events of each type, as the command `millrace topics` does.
func topics(t *testing.T, j *journal.Journal) map[string][2]uint64 {
	t.Helper()
	counted := map[string][2]uint64{}
	for head, err := range j.Heads(t.Context(), journal.HeadsQuery{}) {
		require.NoError(t, err)
		n := counted[head.Aggregate.Type]
		counted[head.Aggregate.Type] = [2]uint64{n[0] + 1, n[1] + head.Version}
	}
	return counted
}

func TestTheTopicsOfTheOldAndTheNewTablesAgreeAfterAMove(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: journal.Packed, Shards: 2}))
	j, err := journal.Open(t.Context(), client, journal.Config{})
	require.NoError(t, err)
	orders, err := repository.New(j, shop.Orders, repository.Config{})
	require.NoError(t, err)
	for _, id := range []string{"1", "2", "deleted"} {
		_, err := orders.Execute(t.Context(), id, shop.Place("ada", 30))
		require.NoError(t, err)
	}
	require.NoError(t, j.Delete(t.Context(), aggregate.ID{Type: "order", Value: "deleted"}, 1, journal.RemoveOptions{}))

	moved := copyTo(t, client, j)

	assert.Equal(t, topics(t, j), topics(t, moved))
	_, err = orders.Execute(t.Context(), "3", shop.Place("ada", 30))
	require.NoError(t, err)
	assert.NotEqual(t, topics(t, j), topics(t, moved), "an aggregate that is missing is noticed")
}
