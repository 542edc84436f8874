package projection_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

const byCustomer = "by-customer"

// orders has an index of the orders of a customer by their days.
var orders = projection.Table{Name: "orders", PartitionKey: "id", Indexes: []projection.Index{
	{Name: byCustomer, PartitionKey: "customer", SortKey: "day", SortType: types.ScalarAttributeTypeN},
}}

// list is a table of orders with a reader of their ids.
type list struct {
	t      *testing.T
	client *dynamodb.Client
	projection.Reader[string]
}

func newList(t *testing.T, client *dynamodb.Client) *list {
	t.Helper()
	require.NoError(t, projection.CreateTable(t.Context(), client, orders))
	return &list{t, client, newReader(client, orders)}
}

func newReader(client projection.ReadClient, table projection.Table) projection.Reader[string] {
	return projection.Reader[string]{Client: client, Table: table, Decode: func(row projection.Row) (string, error) { return row.Text("id"), nil }}
}

func (l *list) put(id, customer string, day int, more item) {
	l.t.Helper()
	order := item{"id": projection.Text(id), "customer": projection.Text(customer), "day": number(day)}
	for name, value := range more {
		order[name] = value
	}
	_, err := l.client.PutItem(l.t.Context(), &dynamodb.PutItemInput{TableName: &orders.Name, Item: order})
	require.NoError(l.t, err)
}

// pages follows the page tokens of a query.
func (l *list) pages(q projection.Query) (pages [][]string) {
	l.t.Helper()
	for {
		page, err := l.Page(l.t.Context(), q)
		require.NoError(l.t, err)
		pages = append(pages, page.Rows)
		if q.Token = page.NextToken; q.Token == "" {
			return pages
		}
	}
}

// ofAnna is a query of the orders of one customer.
func ofAnna(change func(*projection.Query)) projection.Query {
	q := projection.Query{Index: byCustomer, Partition: "anna"}
	if change != nil {
		change(&q)
	}
	return q
}

func TestPagesShowEveryRowOnceInOrder(t *testing.T) {
	t.Parallel()
	l := newList(t, testdb.Client(t))
	var all []string
	for day := range 7 {
		all = append(all, fmt.Sprint("anna-", day))
		l.put(all[day], "anna", day, nil)
		l.put(fmt.Sprint("bert-", day), "bert", day, nil)
	}
	limit := func(n int, down bool) projection.Query {
		return ofAnna(func(q *projection.Query) { q.Limit, q.Descending = n, down })
	}
	assert.Equal(t, [][]string{all[:3], all[3:6], all[6:]}, l.pages(limit(3, false)))
	assert.Equal(t, [][]string{all}, l.pages(limit(7, false)), "a full page that is the last has no token")
	assert.Equal(t, [][]string{{}}, l.pages(projection.Query{Index: byCustomer, Partition: "carl"}))
	slices.Reverse(all)
	assert.Equal(t, [][]string{all[:4], all[4:]}, l.pages(limit(4, true)))
}

func TestAQuerySelectsRowsBySortKeyAndFilters(t *testing.T) {
	t.Parallel()
	l := newList(t, testdb.Client(t))
	state := func(s string) item { return item{"state": projection.Text(s)} }
	l.put("a", "anna", 1, state("open"))
	l.put("b", "anna", 2, state("closed"))
	l.put("c", "anna", 3, nil)
	l.put("d", "anna", 10, state("opening"))
	for name, c := range map[string]struct {
		query func(*projection.Query)
		want  []string
	}{
		"from":           {func(q *projection.Query) { q.From = number(2) }, []string{"b", "c", "d"}},
		"to":             {func(q *projection.Query) { q.To = number(2) }, []string{"a", "b"}},
		"between":        {func(q *projection.Query) { q.From, q.To = number(2), number(10) }, []string{"b", "c", "d"}},
		"equal":          {filters(projection.Where("state", "=", projection.Text("open"))), []string{"a"}},
		"not equal":      {filters(projection.Where("state", "<>", projection.Text("open"))), []string{"b", "c", "d"}},
		"less":           {filters(projection.Where("state", "<", projection.Text("open"))), []string{"b"}},
		"at least":       {filters(projection.Where("state", ">=", projection.Text("open"))), []string{"a", "d"}},
		"contains":       {filters(projection.Where("state", "contains", projection.Text("pen"))), []string{"a", "d"}},
		"begins":         {filters(projection.Where("state", "begins_with", projection.Text("opening"))), []string{"d"}},
		"two filters":    {filters(projection.Where("state", ">", projection.Text("a")), projection.Where("state", "<", projection.Text("p"))), []string{"a", "b", "d"}},
		"one of two":     {filters(projection.AnyOf(projection.Where("state", "=", projection.Text("open")), projection.Where("state", "=", projection.Text("closed")))), []string{"a", "b"}},
		"nothing at all": {filters(projection.Where("state", "=", projection.Text("lost"))), []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, err := l.Page(t.Context(), ofAnna(c.query))
			require.NoError(t, err)
			assert.Equal(t, c.want, page.Rows)
		})
	}
}

func filters(all ...projection.Filter) func(*projection.Query) {
	return func(q *projection.Query) { q.Filters = all }
}

func TestATableIsQueriedByItsOwnKeys(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	lines := projection.Table{Name: "lines", PartitionKey: "order", SortKey: "line"}
	require.NoError(t, projection.CreateTable(t.Context(), client, lines))
	for _, line := range []string{"a1", "a2", "b1"} {
		item := lines.Key("1", line)
		item["id"] = projection.Text(line)
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &lines.Name, Item: item})
		require.NoError(t, err)
	}
	l := &list{t, client, newReader(client, lines)}

	assert.Equal(t, [][]string{{"a1"}, {"a2"}}, l.pages(projection.Query{Partition: "1", Prefix: "a", Limit: 1, Consistent: true}))
	line, found, err := l.Get(t.Context(), "1", "b1")
	require.NoError(t, err)
	assert.True(t, found)
	assert.Equal(t, "b1", line)
	for _, key := range [][]string{{"2", "b1"}, {"1", "c"}, {"", "b1"}, {"1", ""}, {"1", string(make([]byte, 1025))}} {
		_, found, err = l.Get(t.Context(), key[0], key[1])
		require.NoError(t, err)
		assert.False(t, found, "%q", key)
	}
}

func TestAFilterThatMatchesLittleStillFillsItsPages(t *testing.T) {
	t.Parallel()
	l := newList(t, dynamotest.New(t).Client())
	var rare []string
	for day := range 450 { // more than one request
		id := fmt.Sprintf("%03d", day)
		if day%90 == 0 {
			rare = append(rare, id)
			l.put(id, "anna", day, item{"state": projection.Text("rare")})
			continue
		}
		l.put(id, "anna", day, nil)
	}
	q := ofAnna(filters(projection.Where("state", "=", projection.Text("rare"))))
	assert.Equal(t, [][]string{rare}, l.pages(q))
	q.Limit = 2
	assert.Equal(t, [][]string{rare[:2], rare[2:4], rare[4:]}, l.pages(q))
}

func TestOneCallReadsABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	l := newList(t, db.Client())
	for day := range 25 {
		l.put(fmt.Sprint(day), "anna", day, nil)
	}
	l.put("rare", "anna", 30, item{"state": projection.Text("rare")})
	q := ofAnna(filters(projection.Where("state", "=", projection.Text("rare"))))

	l.MaxRead = 10
	assert.Equal(t, [][]string{{}, {}, {"rare"}}, l.pages(q), "26 rows, 10 at a time")
	assert.Len(t, l.pages(ofAnna(nil))[0], 10, "the bound is for every query")

	l.MaxRead = 0
	db.Inject(dynamotest.SmallPages(1), dynamotest.On("Query"))
	assert.Equal(t, [][]string{{}, {}, {"rare"}}, l.pages(q), "10 requests at a time")
	assert.Len(t, l.pages(ofAnna(nil))[0], 10)
}

func TestAllRowsAreReadOverManyRequests(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	l := newList(t, db.Client())
	for day := range 25 {
		l.put(fmt.Sprint(day), "anna", day, nil)
	}
	db.Inject(dynamotest.SmallPages(2), dynamotest.On("Query"))
	count := 0
	for id, err := range l.All(t.Context(), ofAnna(nil)) {
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint(count), id)
		count++
	}
	assert.Equal(t, 25, count)
	for _, err := range l.All(t.Context(), ofAnna(nil)) {
		require.NoError(t, err)
		break
	}
	for _, err := range l.All(t.Context(), projection.Query{}) {
		require.ErrorAs(t, err, new(*projection.QueryError))
	}
}

func TestARowThatArrivesBetweenTwoPagesRepeatsNone(t *testing.T) {
	t.Parallel()
	l := newList(t, testdb.Client(t))
	for day := range 4 {
		l.put(fmt.Sprint(day), "anna", day, nil)
	}
	q := ofAnna(func(q *projection.Query) { q.Limit, q.Descending = 2, true })
	first, err := l.Page(t.Context(), q)
	require.NoError(t, err)
	l.put("new", "anna", 9, nil)
	_, err = l.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &orders.Name, Key: orders.Key("2")})
	require.NoError(t, err, "the row of the token")

	q.Token = first.NextToken
	second, err := l.Page(t.Context(), q)
	require.NoError(t, err)
	assert.Equal(t, []string{"3", "2", "1", "0"}, slices.Concat(first.Rows, second.Rows))
}

func TestAnIndexHoldsOnlyRowsWithItsKeys(t *testing.T) {
	t.Parallel()
	l := newList(t, testdb.Client(t))
	l.put("open", "anna", 1, nil)
	_, err := l.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &orders.Name, Item: item{"id": projection.Text("draft"), "customer": projection.Text("anna")}})
	require.NoError(t, err)
	assert.Equal(t, [][]string{{"open"}}, l.pages(ofAnna(nil)))
}

func TestAReaderHidesPositionsAndRowsThatNoReactionHasWritten(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("noted", 0, Noted{})
	w.write("anna", 0, Deposited{5}, Noted{})
	rows := newRows(t, w.client)
	sub := w.consumeRows(rows, subscriber.Config{})
	eventually(t, "all are handled", func() bool { return w.total("anna") == 5 && rows.Stats().Ignored == 2 })
	require.NoError(t, sub.Close())
	_, _, err := rows.Claim(t.Context(), ours, account("claimed"), 1)
	require.NoError(t, err)
	require.NotEmpty(t, w.row("claimed"))
	require.NotEmpty(t, w.row("noted"))

	reader := projection.Reader[projection.Row]{
		Client: w.client, Table: totals.Table, Decode: func(row projection.Row) (projection.Row, error) { return row, nil },
	}
	want := projection.Row{"id": projection.Text("anna"), "total": number(5)}
	row, found, err := reader.Get(t.Context(), "anna")
	require.NoError(t, err)
	assert.True(t, found)
	assert.Equal(t, want, row)
	page, err := reader.Page(t.Context(), projection.Query{Partition: "anna"})
	require.NoError(t, err)
	assert.Equal(t, []projection.Row{want}, page.Rows)

	for _, empty := range []string{"claimed", "noted"} {
		_, found, err = reader.Get(t.Context(), empty)
		require.NoError(t, err)
		assert.False(t, found)
		page, err = reader.Page(t.Context(), projection.Query{Partition: empty})
		require.NoError(t, err)
		assert.Empty(t, page.Rows)
		for _, err := range reader.All(t.Context(), projection.Query{Partition: empty}) {
			assert.Fail(t, "a row", err)
		}
	}
}

func TestARowThatCannotBeDecodedIsNamed(t *testing.T) {
	t.Parallel()
	l := newList(t, testdb.Client(t))
	l.put("1", "anna", 1, nil)
	odd := errors.New("odd")
	reader := projection.Reader[int]{Client: l.client, Table: orders, Decode: func(projection.Row) (int, error) { return 0, odd }}

	_, err := reader.Page(t.Context(), ofAnna(nil))
	require.ErrorIs(t, err, odd)
	require.ErrorContains(t, err, `decode row "1" "" of table "orders"`)
	_, _, err = reader.Get(t.Context(), "1")
	require.ErrorIs(t, err, odd)
	for _, err := range reader.All(t.Context(), ofAnna(nil)) {
		require.ErrorIs(t, err, odd)
	}
}

func TestAQueryThatCannotWorkIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client() // without tables
	reader := newReader(client, orders)
	text := projection.Text("x")
	for reason, query := range map[string]func(*projection.Query){
		`Partition has 0 bytes`:                   func(q *projection.Query) { q.Partition = "" },
		`Partition has 2049 bytes`:                func(q *projection.Query) { q.Partition = string(make([]byte, 2049)) },
		`Index is "by-day", which table "orders"`: func(q *projection.Query) { q.Index = "by-day" },
		`Consistent is set`:                       func(q *projection.Query) { q.Consistent = true },
		`Limit is -1, not 1 to 1000`:              func(q *projection.Query) { q.Limit = -1 },
		`Limit is 1001`:                           func(q *projection.Query) { q.Limit = 1001 },
		`From is after To`:                        func(q *projection.Query) { q.From, q.To = number(10), number(9) },
		`another type than the sort key "day"`:    func(q *projection.Query) { q.From = text },
		`sort key "day", which is N`:              func(q *projection.Query) { q.Prefix = "1" },
		`together with From or To`:                func(q *projection.Query) { q.Prefix, q.To = "1", number(9) },
		`there is no sort key`:                    func(q *projection.Query) { q.Index, q.Prefix = "", "1" },
		`has the key "day"`:                       filters(projection.Where("day", "=", text)),
		`has the operator "IN"`:                   filters(projection.Where("state", "IN", text)),
		`without an attribute or a value`:         filters(projection.Where("state", "=", nil)),
		`AnyOf without a filter`:                  filters(projection.AnyOf()),
		`compares "state" with a list or a map`:   filters(projection.AnyOf(projection.Where("state", "=", &types.AttributeValueMemberL{}))),
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			_, err := reader.Page(t.Context(), ofAnna(query))
			require.ErrorAs(t, err, new(*projection.QueryError))
			assert.ErrorContains(t, err, reason)
		})
	}
}

func TestAReaderNeedsATableAndADecoder(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	decode := func(projection.Row) (string, error) { return "", nil }
	for name, reader := range map[string]projection.Reader[string]{
		"no client":   {Table: orders, Decode: decode},
		"no table":    {Client: client, Decode: decode},
		"no decoder":  {Client: client, Table: orders},
		"a MaxRead":   {Client: client, Table: orders, Decode: decode, MaxRead: -1},
		"a key of us": {Client: client, Table: projection.Table{Name: "orders", PartitionKey: "millrace_id"}, Decode: decode},
	} {
		_, _, err := reader.Get(t.Context(), "1")
		require.ErrorAs(t, err, new(*projection.ConfigError), name)
		_, err = reader.Page(t.Context(), ofAnna(nil))
		require.ErrorAs(t, err, new(*projection.ConfigError), name)
		for _, err := range reader.All(t.Context(), ofAnna(nil)) {
			require.ErrorAs(t, err, new(*projection.ConfigError), name)
		}
	}
}

func TestAReaderExplainsWhatDynamoDBRefuses(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	reader := newReader(db.Client(testdb.Once), orders)
	ask := func() error {
		_, err := reader.Page(t.Context(), ofAnna(nil))
		return err
	}
	require.ErrorIs(t, ask(), journal.ErrTableMissing)

	plain := orders
	plain.Indexes = nil
	require.NoError(t, projection.CreateTable(t.Context(), db.Client(), plain))
	var missing *projection.IndexMissingError
	require.ErrorAs(t, ask(), &missing)
	require.ErrorContains(t, missing, `table "orders" has no index "by-customer": send the request IndexMissingError.Add`)
	_, err := db.Client().UpdateTable(t.Context(), missing.Add)
	require.NoError(t, err)
	require.NoError(t, ask())

	for _, c := range []struct {
		fault dynamotest.Fault
		check func(error)
	}{
		{dynamotest.Throttle(), func(err error) { require.ErrorIs(t, err, journal.ErrThrottled) }},
		{dynamotest.Refuse(&smithy.GenericAPIError{
			Code: "ValidationException", Message: "Cannot read from backfilling global secondary index: by-customer",
		}), func(err error) {
			require.ErrorAs(t, err, &missing)
			require.ErrorIs(t, err, journal.ErrTableMissing)
			require.ErrorContains(t, err, "is still building")
			require.Nil(t, missing.Add)
		}},
	} {
		db.Inject(c.fault, dynamotest.On("Query"), dynamotest.Times(1))
		c.check(ask())
	}
	db.Inject(dynamotest.Throttle(), dynamotest.On("GetItem"), dynamotest.Times(1))
	_, _, err = reader.Get(t.Context(), "1")
	require.ErrorIs(t, err, journal.ErrThrottled)
}

// A row of package Rows changes its position with each event. An index that holds the position is
// written with each event too.
func TestAnIndexWithFewAttributesCostsLessThanAll(t *testing.T) {
	t.Parallel()
	units := func(attributes []string) (indexed float64) {
		db := dynamotest.New(t)
		w := setupOn(t, db.Client(), journal.Packed)
		table := projection.RowTable{Table: projection.Table{Name: "owned", PartitionKey: "id", Indexes: []projection.Index{
			{Name: "by-owner", PartitionKey: "owner", Attributes: attributes},
		}}}
		require.NoError(t, projection.CreateTable(t.Context(), db.Client(), table.Table))
		rows, err := projection.NewRows(w.client, table, projection.Config{}, projection.OnRow(
			func(_ context.Context, e Deposited, _ *journal.Record) (projection.RowUpdate, error) {
				return projection.RowUpdate{
					Expression: "SET #owner = :owner ADD #total :amount", Names: map[string]string{"#owner": "owner", "#total": "total"},
					Values: item{":owner": projection.Text("anna"), ":amount": number(e.Amount)},
				}, nil
			}))
		require.NoError(t, err)
		recording := db.Record()
		for n := range 5 {
			w.write("anna", n, Deposited{1})
		}
		sub := w.consumeRows(rows, subscriber.Config{MaxInFlight: 1})
		reader := projection.Reader[int64]{
			Client: w.client, Table: table.Table, Decode: func(row projection.Row) (int64, error) { return row.Number("total"), nil },
		}
		eventually(t, "all count", func() bool {
			total, _, err := reader.Get(t.Context(), "anna")
			return err == nil && total == 5
		})
		require.NoError(t, sub.Close())
		for _, call := range recording.Calls("UpdateItem") {
			for _, used := range call.Capacity {
				if used.Index == "by-owner" {
					indexed += used.WriteUnits
				}
			}
		}
		return indexed
	}
	assert.InDelta(t, 5, units(nil), 0)
	assert.InDelta(t, 1, units([]string{}), 0)
}

// fill puts the tasks of an example.
func fill(ctx context.Context, client *dynamodb.Client, table projection.Table) {
	for i, title := range []string{"pay", "wait", "call", "write"} {
		task := table.Key(fmt.Sprint(i + 1))
		task["user"], task["day"], task["title"], task["state"] = projection.Text("anna"), projection.Number(20+i), projection.Text(title), projection.Text("open")
		if title == "wait" {
			task["state"] = projection.Text("done")
		}
		_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table.Name, Item: task})
		check(err)
	}
}
