package projection_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// totals are rows in the table of the other tests.
var totals = projection.RowTable{Table: projection.Table{Name: table, PartitionKey: "id"}}

var ours = subscriber.GroupKey{Name: "totals"}

// addToRow adds an amount to the total of a row.
func addToRow(amount int) projection.RowUpdate {
	return projection.RowUpdate{
		Expression: "ADD #total :amount", Names: map[string]string{"#total": "total"}, Values: item{":amount": number(amount)},
	}
}

var sumInRow = projection.OnRow(func(_ context.Context, e Deposited, _ *journal.Record) (projection.RowUpdate, error) {
	return addToRow(e.Amount), nil
})

func newRows(t *testing.T, client projection.RowClient) *projection.Rows {
	t.Helper()
	rows, err := projection.NewRows(client, totals, projection.Config{}, sumInRow)
	require.NoError(t, err)
	return rows
}

// newRowTotals returns rows that take runs.
func newRowTotals(t *testing.T, client projection.RowClient, config projection.Config) *projection.Rows {
	t.Helper()
	rows, err := projection.NewBatchRows(client, totals, config,
		func(_ context.Context, sum int, _ projection.Run) (projection.RowUpdate, error) {
			return addToRow(sum), nil
		},
		projection.Fold(func(sum *int, e Deposited, _ *journal.Record) error { *sum += e.Amount; return nil }))
	require.NoError(t, err)
	return rows
}

// row returns the row of an aggregate.
func (w *world) row(id string) item {
	w.t.Helper()
	out, err := w.client.GetItem(w.t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: totals.Key(account(id)), ConsistentRead: aws.Bool(true)})
	require.NoError(w.t, err)
	return out.Item
}

func (w *world) delete(id string) {
	w.t.Helper()
	_, err := w.client.DeleteItem(w.t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: totals.Key(account(id))})
	require.NoError(w.t, err)
}

func (w *world) consumeRows(rows *projection.Rows, config subscriber.Config) consumer {
	config.Positions = rows
	return w.consume(config, rows.Handle)
}

// isAt reports whether a row has applied all deposits up to a number.
func (w *world) isAt(id string, n int) bool {
	w.t.Helper()
	at, _ := w.row(id)["millrace_number"].(*types.AttributeValueMemberN)
	return at != nil && at.Value == fmt.Sprint(n) && w.total(id) == n*(n+1)/2
}

func TestARowIsItsOwnPosition(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, Deposited{1}, Deposited{2}, Noted{}, Deposited{3})
	rows := newRows(t, w.client)
	sub := w.consumeRows(rows, subscriber.Config{})
	eventually(t, "the deposits count", func() bool { return w.total("x") == 6 })
	require.NoError(t, sub.Close())
	row := w.row("x")
	assert.Equal(t, &types.AttributeValueMemberS{Value: "totals/account"}, row["millrace_group"])
	assert.Equal(t, number(4), row["millrace_number"])
	assert.Equal(t, projection.Stats{Applied: 3, Ignored: 1}, rows.Stats())
	position, found, err := rows.Position(t.Context(), ours, account("x"))
	require.NoError(t, err)
	assert.True(t, found)
	assert.EqualValues(t, 4, position)

	w.write("x", 4, Deposited{4}, Noted{})
	rows = newRows(t, w.client)
	sub = w.consumeRows(rows, subscriber.Config{})
	eventually(t, "only what is new counts", func() bool { return w.total("x") == 10 && rows.Stats().Ignored == 1 })
	require.NoError(t, sub.Close())
	assert.Equal(t, number(6), w.row("x")["millrace_number"], "an event without effect moves the number")
}

func TestARunOfEventsIsOneUpdateOfARow(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, deposits(90)...)
	proxy := dynamotest.NewProxy(t, w.client)
	calls := proxy.Record()
	sub := w.consumeRows(newRowTotals(t, proxy.Client(), projection.Config{MaxRun: 30}), subscriber.Config{})
	eventually(t, "all count", func() bool { return w.isAt("x", 90) })
	require.NoError(t, sub.Close())
	assert.Less(t, len(calls.Calls("UpdateItem")), 10, "a claim and three runs, or a few more where the index lags")
}

func TestAnEventCostsOneWriteUnitAndTheFirstInATermOneMore(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		testdb.WithFakeTime(t, func(t *testing.T) {
			db := dynamotest.New(t)
			w := setupOn(t, db.Client(), layout)
			w.write("x", 0, deposits(10)...)
			units, other := 0.0, 0
			db.Observe(func(c dynamotest.Call) {
				if !slices.Contains(c.Tables, table) || c.Operation == "GetItem" { // the test's own
					return
				}
				units += c.WriteUnits
				if c.Operation != "UpdateItem" {
					other++
				}
			})
			sub := w.consumeRows(newRows(t, w.client), subscriber.Config{})
			eventually(t, "all count", func() bool { return w.isAt("x", 10) })
			assert.InDelta(t, 10, units, 0, "the first term needs no claim")
			w.write("x", 10, Deposited{11})
			eventually(t, "the next one counts", func() bool { return w.isAt("x", 11) })
			require.NoError(t, sub.Close())
			assert.InDelta(t, 11, units, 0)
			w.write("x", 11, Deposited{12})
			sub = w.consumeRows(newRows(t, w.client), subscriber.Config{})
			eventually(t, "the next term", func() bool { return w.isAt("x", 12) })
			require.NoError(t, sub.Close())
			assert.InDelta(t, 13, units, 0)
			assert.Zero(t, other, "of other requests than updates")
		})
	})
}

func TestADeletedRowIsBuiltAgainFromTheFirstEvent(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		w.write("x", 0, deposits(5)...)
		w.write("y", 0, deposits(5)...)
		w.write("z", 0, deposits(5)...)
		sub := w.consumeRows(newRows(t, w.client), subscriber.Config{})
		all := func(n int) func() bool {
			return func() bool { return w.isAt("x", n) && w.isAt("y", n) }
		}
		eventually(t, "all count", all(5))
		w.delete("x")
		w.delete("y")
		w.write("x", 5, Deposited{6})
		w.write("y", 5, Noted{}) // the subscriber itself meets that the row is gone
		eventually(t, "x has all events again", func() bool { return w.isAt("x", 6) })
		eventually(t, "y has all events again", func() bool { return w.total("y") == 15 })
		require.NoError(t, sub.Close())
		assert.Equal(t, number(6), w.row("y")["millrace_number"])

		// while no member runs
		w.delete("z")
		w.write("z", 5, Deposited{6})
		sub = w.consumeRows(newRowTotals(t, w.client, projection.Config{}), subscriber.Config{})
		eventually(t, "z has all events again", func() bool { return w.isAt("z", 6) })
		require.NoError(t, sub.Close())
	})
}

func TestARebuildReplacesRowsAndRefusesLateUpdates(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		w.write("x", 0, deposits(5)...)
		w.write("y", 0, Noted{}) // its claim stays in the first generation
		rows := newRows(t, w.client)
		sub := w.consumeRows(rows, subscriber.Config{})
		eventually(t, "all count", func() bool { return w.isAt("x", 5) })
		require.NoError(t, sub.Close())
		old := w.row("x")
		require.NoError(t, groups.Of(w.j, "totals", topic).Reset(t.Context(), subscriber.Beginning(), nil))
		_, found, err := rows.Position(t.Context(), subscriber.GroupKey{Name: "totals", Resets: 1}, account("x"))
		require.NoError(t, err)
		assert.False(t, found, "the row is of the time before the reset")

		twice, err := projection.NewRows(w.client, totals, projection.Config{}, projection.OnRow(
			func(_ context.Context, e Deposited, _ *journal.Record) (projection.RowUpdate, error) {
				return projection.RowUpdate{Expression: "ADD doubled :a", Values: item{":a": number(2 * e.Amount)}}, nil
			}))
		require.NoError(t, err)
		sub = w.consumeRows(twice, subscriber.Config{})
		eventually(t, "it is built again", func() bool { return assert.ObjectsAreEqual(number(30), w.row("x")["doubled"]) })
		require.NoError(t, sub.Close())
		row := w.row("x")
		assert.NotContains(t, row, "total", "nothing of before the reset is left")
		assert.Equal(t, number(1), row["millrace_resets"])
		assert.NotEqual(t, old["millrace_epoch"], row["millrace_epoch"])

		// A late claim and a late update of an owner from before the reset.
		_, _, err = rows.Claim(t.Context(), ours, account("x"), 99)
		require.ErrorIs(t, err, subscriber.ErrFenced)
		require.ErrorIs(t, rows.Advance(t.Context(), ours, account("x"), 99, 5, 6), subscriber.ErrFenced)
		assert.Equal(t, row, w.row("x"))
	})
}

func storeOf(t *testing.T) (*world, *projection.Rows) {
	w := setup(t)
	return w, newRows(t, w.client)
}

func mustClaim(t *testing.T, rows *projection.Rows, group subscriber.GroupKey, epoch uint64) uint64 {
	t.Helper()
	position, _, err := rows.Claim(t.Context(), group, account("x"), epoch)
	require.NoError(t, err)
	return position
}

func TestTheOwnerOfARowIsTheNewestEpoch(t *testing.T) {
	t.Parallel()
	w, rows := storeOf(t)
	advance := func(epoch, from, to uint64) error {
		return rows.Advance(t.Context(), ours, account("x"), epoch, from, to)
	}
	position, found, err := rows.Claim(t.Context(), ours, account("x"), 3)
	require.NoError(t, err)
	assert.False(t, found)
	assert.Zero(t, position)
	require.NoError(t, advance(3, 0, 2))
	require.NoError(t, advance(3, 0, 2), "it is repeated because its reply was lost")
	require.Error(t, advance(3, 0, 3), "it is repeated with another length")
	assert.Equal(t, number(2), w.row("x")["millrace_number"])
	assert.EqualValues(t, 2, mustClaim(t, rows, ours, 3))

	assert.EqualValues(t, 2, mustClaim(t, rows, ours, 4))
	require.ErrorIs(t, advance(3, 2, 3), subscriber.ErrFenced, "the old owner is late")
	_, _, err = rows.Claim(t.Context(), ours, account("x"), 3)
	require.ErrorIs(t, err, subscriber.ErrFenced)
	require.NoError(t, advance(4, 2, 3))

	w.delete("x")
	err = advance(4, 3, 4)
	require.Error(t, err)
	require.NotErrorIs(t, err, subscriber.ErrFenced, "nobody has taken over")
	assert.Empty(t, w.row("x"), "the update does not make a row")
	assert.Zero(t, mustClaim(t, rows, ours, 4))
}

func TestABaselineCanBeStoredAsZero(t *testing.T) {
	t.Parallel()
	_, rows := storeOf(t)
	mustClaim(t, rows, ours, 1)
	require.NoError(t, rows.Advance(t.Context(), ours, account("x"), 1, 0, 0))
	_, found, err := rows.Claim(t.Context(), ours, account("x"), 1)
	require.NoError(t, err)
	assert.True(t, found)
}

func TestAClaimAfterAResetEmptiesTheRowOnce(t *testing.T) {
	t.Parallel()
	w, rows := storeOf(t)
	mustClaim(t, rows, ours, 7)
	require.NoError(t, rows.Advance(t.Context(), ours, account("x"), 7, 0, 5))
	reset := subscriber.GroupKey{Name: "totals", Resets: 2}
	assert.Zero(t, mustClaim(t, rows, reset, 1), "also under a lower epoch, as after a removal of the group")
	require.NoError(t, rows.Advance(t.Context(), reset, account("x"), 1, 0, 1))
	assert.EqualValues(t, 1, mustClaim(t, rows, reset, 1))
	require.ErrorIs(t, rows.Advance(t.Context(), ours, account("x"), 7, 5, 6), subscriber.ErrFenced)
	assert.Equal(t, number(1), w.row("x")["millrace_number"])
}

func TestRowsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	w, rows := storeOf(t)
	mustClaim(t, rows, ours, 1)
	_, _, err := rows.Claim(t.Context(), subscriber.GroupKey{Name: "others"}, account("x"), 5)
	require.ErrorIs(t, err, projection.ErrRowTaken)
	require.ErrorContains(t, err, `"totals/account"`)
	_, _, err = rows.Claim(t.Context(), ours, aggregate.ID{Type: "order", Value: "x"}, 5)
	require.ErrorIs(t, err, projection.ErrRowTaken, "of another topic")
	_, found, err := rows.Position(t.Context(), subscriber.GroupKey{Name: "others"}, account("x"))
	require.NoError(t, err)
	assert.False(t, found)

	_, err = w.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: totals.Key(account("foreign"))})
	require.NoError(t, err)
	_, _, err = rows.Claim(t.Context(), ours, account("foreign"), 1)
	require.ErrorIs(t, err, projection.ErrRowTaken)
}

func TestTheSecondGroupOnATableIsBlockedWithTheReason(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		w.write("x", 0, deposits(3)...)
		w.consumeRows(newRows(t, w.client), subscriber.Config{})
		eventually(t, "all count", func() bool { return w.isAt("x", 3) })
		rows := newRows(t, w.client)
		sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: w.j, ConsumerGroup: "others", Positions: rows}, nil)
		require.NoError(t, err)
		messages, err := sub.Subscribe(t.Context(), topic)
		require.NoError(t, err)
		for range 2 {
			msg := <-messages
			require.ErrorIs(t, rows.Handle(msg), projection.ErrRowTaken)
			msg.Nack()
		}
		require.NoError(t, sub.Close())
		assert.True(t, w.isAt("x", 3))
	})
}

func TestATableThatCannotHoldTheRowsIsReported(t *testing.T) {
	t.Parallel()
	w := setup(t)
	claim := func(table projection.RowTable) error {
		rows, err := projection.NewRows(w.client, table, projection.Config{}, sumInRow)
		require.NoError(t, err)
		_, _, err = rows.Claim(t.Context(), ours, account("x"), 1)
		return err
	}
	require.ErrorIs(t, claim(projection.RowTable{Table: projection.Table{Name: "missing", PartitionKey: "id"}}), journal.ErrTableMissing)
	require.ErrorIs(t, claim(projection.RowTable{Table: projection.Table{Name: table, PartitionKey: "pk"}}), projection.ErrRowKeys)
	require.ErrorIs(t, claim(projection.RowTable{Table: projection.Table{Name: table, PartitionKey: "id", SortKey: "sk"}, Sort: "s"}), projection.ErrRowKeys)
	_, _, err := mustRows(t, w.client, projection.RowTable{Table: projection.Table{Name: table, PartitionKey: "pk"}}).Position(t.Context(), ours, account("x"))
	require.ErrorIs(t, err, projection.ErrRowKeys)
}

func mustRows(t *testing.T, client projection.RowClient, table projection.RowTable) *projection.Rows {
	t.Helper()
	rows, err := projection.NewRows(client, table, projection.Config{}, sumInRow)
	require.NoError(t, err)
	return rows
}

func TestRowsHavePrefixAndSortKey(t *testing.T) {
	t.Parallel()
	w := setup(t)
	at := projection.RowTable{Table: projection.Table{Name: "orders", PartitionKey: "pk", SortKey: "sk"}, Prefix: "account#", Sort: "total"}
	require.NoError(t, projection.CreateTable(t.Context(), w.client, at.Table))
	assert.Equal(t, item{"pk": &types.AttributeValueMemberS{Value: "account#x"}, "sk": &types.AttributeValueMemberS{Value: "total"}}, at.Key(account("x")))
	rows := mustRows(t, w.client, at)
	mustClaim(t, rows, ours, 1)
	require.NoError(t, rows.Advance(t.Context(), ours, account("x"), 1, 0, 4))
	assert.EqualValues(t, 4, mustClaim(t, rows, ours, 2))
}

func TestRowsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	client := &dynamodb.Client{}
	key := projection.Table{Name: table, PartitionKey: "id"}
	for name, at := range map[string]projection.RowTable{
		"no table":     {Table: projection.Table{PartitionKey: "id"}},
		"no key":       {Table: projection.Table{Name: table}},
		"expiry":       {Table: projection.Table{Name: table, PartitionKey: "id", TimeToLive: "ttl"}},
		"no sort":      {Table: projection.Table{Name: table, PartitionKey: "id", SortKey: "sk"}},
		"no sort key":  {Table: key, Sort: "s"},
		"reserved key": {Table: projection.Table{Name: table, PartitionKey: "millrace_id"}},
	} {
		_, err := projection.NewRows(client, at, projection.Config{}, sumInRow)
		require.ErrorAs(t, err, new(*projection.ConfigError), name)
	}
	for name, reactions := range map[string][]projection.RowReaction{
		"empty": {{}}, "no function": {projection.OnRow[Deposited](nil)}, "two": {sumInRow, sumInRow},
	} {
		_, err := projection.NewRows(client, totals, projection.Config{}, reactions...)
		require.ErrorAs(t, err, new(*projection.ConfigError), name)
	}
	_, err := projection.NewRows(nil, totals, projection.Config{}, sumInRow)
	require.ErrorAs(t, err, new(*projection.ConfigError))
	_, err = projection.NewBatchRows[int](client, totals, projection.Config{}, nil)
	require.ErrorAs(t, err, new(*projection.ConfigError))
	assert.Equal(t, []string{"deposited"}, mustRows(t, client, totals).EventTypes())
}

func TestUpdatesOfReservedAttributesAreRefused(t *testing.T) {
	t.Parallel()
	for name, u := range map[string]projection.RowUpdate{
		"in the expression": {Expression: "SET millrace_number = :a", Values: item{":a": number(9)}},
		"by a name":         {Expression: "SET #a = :a", Names: map[string]string{"#a": "millrace_epoch"}, Values: item{":a": number(9)}},
		"as a placeholder":  {Expression: "SET a = :millrace_to"},
		"by a value":        {Expression: "SET a = :a", Values: item{":a": number(9), ":millrace_to": number(9)}},
		"by a placeholder":  {Expression: "SET a = :a", Names: map[string]string{"#millrace_k": "a"}, Values: item{":a": number(9)}},
	} {
		w := setup(t)
		w.write("x", 0, Deposited{1})
		rows, err := projection.NewRows(w.client, totals, projection.Config{}, projection.OnRow(
			func(context.Context, Deposited, *journal.Record) (projection.RowUpdate, error) { return u, nil }))
		require.NoError(t, err)
		require.ErrorAs(t, w.handleNextOf(subscriber.Config{Positions: rows}, rows.Handle), new(*projection.ConfigError), name)
		assert.NotContains(t, w.row("x"), "millrace_number", name)
	}
}

func TestARowUpdateKeepsItsClauses(t *testing.T) {
	t.Parallel()
	w := setup(t)
	expressions := map[string]string{
		"set-first": "SET a = :v", "set-in-between": "ADD b :v set a = :v REMOVE c", "no-set": "ADD b :v", "offset": "SET offset_ = :v",
	}
	for id := range expressions {
		w.write(id, 0, Deposited{1})
	}
	rows, err := projection.NewRows(w.client, totals, projection.Config{}, projection.OnRow(
		func(_ context.Context, _ Deposited, r *journal.Record) (projection.RowUpdate, error) {
			return projection.RowUpdate{Expression: expressions[r.Aggregate.Value], Values: item{":v": number(7)}}, nil
		}))
	require.NoError(t, err)
	w.consumeRows(rows, subscriber.Config{})
	eventually(t, "all are applied", func() bool { return rows.Stats().Applied == 4 })
	for id, attributes := range map[string][]string{"set-first": {"a"}, "set-in-between": {"a", "b"}, "no-set": {"b"}, "offset": {"offset_"}} {
		row := w.row(id)
		assert.Equal(t, number(1), row["millrace_number"], id)
		for _, attribute := range attributes {
			assert.Equal(t, number(7), row[attribute], id)
		}
	}
}

func TestARunWhoseReplyWasLostIsAppliedOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dynamotest.Fault{
		"the reply is lost":     dynamotest.LoseReply(),
		"the request is late":   dynamotest.LateBy(0, 20*time.Millisecond),
		"it is later":           dynamotest.LateBy(2*time.Second, 3*time.Second),
		"the connection is cut": dynamotest.CutConnection(),
		"throttled":             dynamotest.Throttle(),
		"conflict":              dynamotest.Conflict(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				w := setup(t)
				w.write("x", 0, deposits(40)...)
				proxy := dynamotest.NewProxy(t, w.client)
				proxy.Inject(fault, dynamotest.On("UpdateItem"), dynamotest.After(2), dynamotest.Times(3))
				// The attempts have other lengths: after a failure the runs are shorter.
				rows := newRowTotals(t, proxy.Client(testdb.Once), projection.Config{MaxRun: 16, RetryBudget: time.Second})
				w.consumeRows(rows, subscriber.Config{AckDeadline: 2 * time.Second})
				eventually(t, "all count once", func() bool { return w.isAt("x", 40) })
				time.Sleep(4 * time.Second) // until all requests have arrived
				assert.True(t, w.isAt("x", 40))
			})
		})
	}
}

func TestAnUpcasterThatSplitsNeedsRuns(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, PaidTwice{1, 2})
	config := projection.Config{Definitions: []aggregate.AnyDefinition{accounts()}}
	rows, err := projection.NewRows(w.client, totals, config, sumInRow)
	require.NoError(t, err)
	require.ErrorAs(t, w.handleNextOf(subscriber.Config{Positions: rows}, rows.Handle), new(*projection.ConfigError))
	w.consumeRows(newRowTotals(t, w.client, config), subscriber.Config{})
	eventually(t, "both parts count", func() bool { return w.total("x") == 3 })
}
