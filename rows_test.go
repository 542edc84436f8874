package millrace_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
)

var setItem = projection.OnRow(func(_ context.Context, e placed, _ *journal.Record) (projection.RowUpdate, error) {
	return projection.RowUpdate{
		Expression: "SET #i = :i", Names: map[string]string{"#i": "item"}, Values: map[string]types.AttributeValue{":i": &types.AttributeValueMemberS{Value: e.Item}},
	}, nil
})

func rowTable(name string) projection.RowTable {
	return projection.RowTable{Table: projection.Table{Name: name, PartitionKey: "order"}}
}

// item returns an attribute of a row.
func item(t *testing.T, client *dynamodb.Client, table projection.RowTable, id string) string {
	t.Helper()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table.Table.Name, Key: table.Table.Key(id)})
	require.NoError(t, err)
	value, _ := out.Item["item"].(*types.AttributeValueMemberS)
	if value == nil {
		return ""
	}
	return value.Value
}

func TestAnAppProjectsToRows(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	app := open(t, db)
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	table := rowTable("shop-items")
	require.NoError(t, projection.CreateTable(t.Context(), db.Client(), table.Table))
	rows, err := app.ProjectRows(millrace.Group{Name: "items", Topics: []string{"order"}}, table, setItem)
	require.NoError(t, err)
	_, err = app.ProjectRows(millrace.Group{Name: "others", Topics: []string{"order"}}, table, setItem)
	require.ErrorAs(t, err, new(*millrace.ConfigError), "two groups cannot have the same rows")
	stop := start(t, app)
	written := testjournal.Execute(t, repo, "1", place("tea"))
	require.NoError(t, app.Groups().WaitApplied(t.Context(), "items", written.ID, written.Version))
	assert.Equal(t, "tea", item(t, db.Client(), table, "1"))
	// The row shows its position before the handler returns.
	assert.Eventually(t, func() bool { return rows.Stats().Applied == 1 }, 10*time.Second, time.Millisecond)
	registry := prometheus.NewRegistry()
	for _, c := range metrics.Collectors(app.Components()) {
		require.NoError(t, registry.Register(c))
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	found := false
	for _, f := range families {
		found = found || f.GetName() == "millrace_projection_events_applied_total"
	}
	assert.True(t, found, "its metrics")
	require.NoError(t, stop())
}

func TestAReadModelOfRowsIsRebuiltWhileItServes(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	app := open(t, db)
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	tableOf := func(g readmodel.Generation) projection.RowTable { return rowTable("shop-" + g.Table("items")) }
	model, err := app.RowReadModel(t.Context(), readmodel.Config{Name: "items", Topics: []string{"order"}, Refresh: 10 * time.Millisecond},
		func(ctx context.Context, g readmodel.Generation) (projection.RowTable, []projection.RowReaction, error) {
			return tableOf(g), []projection.RowReaction{setItem}, projection.CreateTable(ctx, db.Client(), tableOf(g).Table)
		})
	require.NoError(t, err)
	stop := start(t, app)
	first, err := model.Serving(t.Context())
	require.NoError(t, err)
	next, err := model.Begin(t.Context())
	require.NoError(t, err)
	written := testjournal.Execute(t, repo, "1", place("tea"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, g := range []readmodel.Generation{first, next} {
		require.NoError(t, app.Groups().WaitApplied(ctx, g.Group(), written.ID, written.Version), g.String())
		assert.Equal(t, "tea", item(t, db.Client(), tableOf(g), "1"), g.String())
	}
	require.NoError(t, model.CatchUp(ctx, next, nil))
	require.NoError(t, model.Switch(ctx, next))
	require.NoError(t, stop())
}

func TestAnAppComputesRowsFromStates(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		app := open(t, db)
		repo, err := millrace.Repository(app, orders, repository.Config{})
		require.NoError(t, err)
		var written repository.Aggregate[order]
		for _, item := range []string{"tea", "milk", "bread"} {
			written = testjournal.Execute(t, repo, "1", place(item))
		}
		time.Sleep(time.Minute)
		table := rowTable("shop-items")
		require.NoError(t, projection.CreateTable(t.Context(), db.Client(), table.Table))
		rows, err := app.ProjectRows(millrace.Group{Name: "items", Topics: []string{"order"}}, table, projection.OnState(repo,
			func(_ context.Context, o repository.Aggregate[order]) (projection.RowUpdate, error) {
				return projection.RowUpdate{
					Expression: "SET #i = :i", Names: map[string]string{"#i": "item"}, Values: map[string]types.AttributeValue{":i": projection.Text(fmt.Sprint(o.State))},
				}, nil
			}))
		require.NoError(t, err)
		stop := start(t, app)
		require.NoError(t, app.Groups().WaitApplied(t.Context(), "items", written.ID, written.Version))
		assert.Equal(t, fmt.Sprint(written.State), item(t, db.Client(), table, "1"))
		require.NoError(t, stop())
		assert.EqualValues(t, 1, rows.Stats().Applied, "only the last event")
	})
}

func TestRowsThatAnAppCannotProjectToAreRefused(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	_, err := app.ProjectRows(millrace.Group{Name: "items", Topics: []string{"order"}}, rowTable("items"))
	require.ErrorAs(t, err, new(*millrace.ConfigError), "no reactions")
	_, err = app.ProjectRows(millrace.Group{Name: "items", Topics: []string{"order"}}, rowTable(""), setItem)
	require.ErrorAs(t, err, new(*projection.ConfigError), "no table")
	_, err = app.RowReadModel(t.Context(), readmodel.Config{Name: "items", Topics: []string{"order"}}, nil)
	require.ErrorAs(t, err, new(*millrace.ConfigError), "no function")
}
