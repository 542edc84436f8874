package readmodel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// begins makes the consumers of a generation begin on a topic. They handle nothing. Crashed makes
// them leave a member behind, as after a crash.
func (w *world) begins(g readmodel.Generation, topic string, crashed bool) {
	w.t.Helper()
	membership := checkpoint.NewMembership(w.j.Shards(), time.Time{})
	if crashed {
		var number uint64
		membership, number = membership.Join(checkpoint.Member{})
		membership = membership.Take(number, []int{0})
	}
	_, err := checkpoint.New(w.j).ChangeMembership(w.t.Context(), checkpoint.Key{Group: g.Group(), Topic: topic}, checkpoint.Membership{}, membership)
	require.NoError(w.t, err)
}

// tool opens the model of w.open as an operator's tool.
func (w *world) tool() *readmodel.Model {
	w.t.Helper()
	config := w.config()
	config.Topics = nil
	m, err := readmodel.OpenExisting(w.t.Context(), w.client, config)
	require.NoError(w.t, err)
	return m
}

func (w *world) progress(m *readmodel.Model, g readmodel.Generation) readmodel.Progress {
	w.t.Helper()
	p, err := m.Progress(w.t.Context(), g)
	require.NoError(w.t, err)
	p.Oldest = time.Time{} // it depends on the time of the test
	return p
}

func TestAToolKnowsTheTopicsByTheGroups(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("a", 0, 10)
	m := w.open(w.config())
	tool := w.tool()
	first := mustServing(t, tool)
	assert.False(t, w.progress(tool, first).Begun, "nobody consumes anything")
	next := mustBegin(t, tool)
	require.ErrorAs(t, tool.Switch(t.Context(), next), new(*readmodel.BehindError))

	w.begins(first, topic, false)
	w.begins(first, "transfer", false)
	assert.Equal(t, readmodel.Progress{Begun: true, Left: 10}, w.progress(tool, first))
	assert.Equal(t, readmodel.Progress{}, w.progress(tool, next))
	w.begins(next, topic, false)
	assert.Equal(t, readmodel.Progress{Left: 10}, w.progress(tool, next), "the serving one consumes transfers too")
	assert.True(t, w.progress(m, next).Begun, "whoever gives topics means them alone")
	w.begins(next, "transfer", false)
	assert.True(t, w.progress(tool, next).Begun)

	testjournal.Append(t, w.j, storage.Commit{Aggregate: aggregate.ID{Type: "refund", Value: "r"}, Events: []storage.Event{{Type: "refunded"}}})
	w.begins(next, "refund", false)
	assert.Equal(t, readmodel.Progress{Begun: true, Left: 11}, w.progress(tool, next), "a topic that only the next one has")
}

func TestAToolMakesNoReadModel(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, err := readmodel.OpenExisting(t.Context(), w.client, w.config())
	require.ErrorIs(t, err, readmodel.ErrNoModel)
	all, err := readmodel.List(t.Context(), w.client, "")
	require.NoError(t, err)
	assert.Empty(t, all)

	_, err = readmodel.OpenExisting(t.Context(), nil, w.config())
	require.ErrorAs(t, err, new(*readmodel.ConfigError))
	config := w.config()
	config.Table = "none"
	_, err = readmodel.OpenExisting(t.Context(), w.client, config)
	require.ErrorIs(t, err, journal.ErrTableMissing)
	_, err = readmodel.List(t.Context(), w.client, "none")
	require.ErrorIs(t, err, journal.ErrTableMissing)
}

func TestReadModelsAreListedWithTheirGenerations(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var want []readmodel.Generations
	for _, name := range []string{"averages", "totals"} {
		want = append(want, readmodel.Generations{
			Live: []readmodel.Generation{{Model: name, Number: 1}, {Model: name, Number: 2}}, Serving: readmodel.Generation{Model: name, Number: 1},
		})
	}
	for _, g := range []readmodel.Generations{want[1], want[0]} {
		config := w.config()
		config.Name = g.Serving.Model
		mustBegin(t, w.open(config))
	}
	all, err := readmodel.List(t.Context(), w.client, "")
	require.NoError(t, err)
	assert.Equal(t, want, all)

	_, err = w.client.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String(readmodel.DefaultTable), Item: item{"name": &types.AttributeValueMemberS{Value: "odd"}},
	})
	require.NoError(t, err)
	_, err = readmodel.List(t.Context(), w.client, "")
	require.ErrorIs(t, err, readmodel.ErrCorrupt)
	require.ErrorContains(t, err, `"odd"`)
}

func TestAnEstimateSaysThatThereMayBeMore(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.open(w.config())
	first := mustServing(t, m)
	w.begins(first, topic, false)
	w.write("a", 0, 10)
	p, err := m.Estimate(t.Context(), first)
	require.NoError(t, err)
	assert.Equal(t, readmodel.Progress{Begun: true, Left: 10}, p)

	for n := 10; n < 310; n += 50 {
		w.write("a", n, 50)
	}
	p, err = m.Estimate(t.Context(), first)
	require.NoError(t, err)
	assert.True(t, p.AtLeast)
	assert.Less(t, p.Left, uint64(310))
	assert.Equal(t, readmodel.Progress{Begun: true, Left: 310}, w.progress(m, first))
}

func TestAGenerationWhoseLastMemberCrashedIsDroppedByForce(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		m := w.open(w.config())
		next := mustBegin(t, m)
		w.begins(next, topic, true)
		w.begins(next, "refund", true) // the configuration does not name this topic
		soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		err := m.Drop(soon, next, groups.RemoveOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorAs(t, err, new(*groups.ActiveError), "it says whom it has waited for")

		require.NoError(t, m.Drop(t.Context(), next, groups.RemoveOptions{Force: true}))
		left, err := groups.New(w.j).Topics(t.Context(), next.Group())
		require.NoError(t, err)
		assert.Empty(t, left)
	})
}

func TestOldRowsThatCannotBeDeletedDoNotEndADrop(t *testing.T) {
	t.Parallel()
	w, log := setup(t), watermill.NewCaptureLogger()
	config := w.config()
	config.Logger = log
	m := w.open(config)
	next := mustBegin(t, m)
	w.begins(next, topic, false)
	w.begins(next, "refund", false)
	_, err := w.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("checkpoint"), Item: item{
		"pkey": &types.AttributeValueMemberS{Value: "groups"}, "skey": &types.AttributeValueMemberS{Value: "removed/" + topic},
		"next_resets": &types.AttributeValueMemberN{Value: "1"}, "ended": &types.AttributeValueMemberB{Value: []byte{0xff}},
	}})
	require.NoError(t, err)

	require.NoError(t, m.Drop(t.Context(), next, groups.RemoveOptions{}))

	left, err := groups.New(w.j).Topics(t.Context(), next.Group())
	require.NoError(t, err)
	assert.Empty(t, left)
	logged := log.Captured()[watermill.ErrorLogLevel]
	require.Len(t, logged, 2, "one for each topic")
	require.ErrorIs(t, logged[0].Err, groups.ErrLeftovers)
}

// A tool rebuilds each read model of a table, whatever topics it consumes.
func ExampleOpenExisting() {
	ctx := context.Background()
	db := dynamotest.Open()
	defer db.Close()
	check(journal.Create(ctx, db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
	check(readmodel.CreateTable(ctx, db.Client(), readmodel.DefaultTable))
	j, err := journal.Open(ctx, db.Client(), journal.Config{})
	check(err)
	for _, name := range []string{"orders", "totals"} { // as their programs do
		_, err = readmodel.Open(ctx, db.Client(), readmodel.Config{Name: name, Journal: j, Topics: []string{"order"}})
		check(err)
	}

	all, err := readmodel.List(ctx, db.Client(), readmodel.DefaultTable)
	check(err)
	for _, g := range all {
		model, err := readmodel.OpenExisting(ctx, db.Client(), readmodel.Config{Name: g.Serving.Model, Journal: j})
		check(err)
		next, err := model.Begin(ctx)
		check(err)
		// Switch refuses a generation that has not caught up.
		err = model.Switch(ctx, next)
		fmt.Println(g.Serving.Model, next.Number, errors.As(err, new(*readmodel.BehindError)))
	}
	// Output:
	// orders 2 true
	// totals 2 true
}

func TestAMissingPermissionIsSaidAsSuch(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
	require.NoError(t, readmodel.CreateTable(t.Context(), db.Client(), ""))
	j := testjournal.Open(t, db.Client(), journal.Config{})
	db.Inject(dynamotest.Refuse(&smithy.GenericAPIError{Code: "AccessDeniedException"}), dynamotest.Table(readmodel.DefaultTable))

	_, err := readmodel.OpenExisting(t.Context(), db.Client(), readmodel.Config{Name: "totals", Journal: j})
	require.ErrorIs(t, err, journal.ErrAccess)
	_, err = readmodel.Open(t.Context(), db.Client(), readmodel.Config{Name: "totals", Journal: j, Topics: []string{topic}})
	require.ErrorIs(t, err, journal.ErrAccess)
	_, err = readmodel.List(t.Context(), db.Client(), "")
	require.ErrorIs(t, err, journal.ErrAccess)
}
