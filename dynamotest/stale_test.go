package dynamotest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

// readsOfOne are the operations that read the item a/1, and return its amount.
var readsOfOne = map[string]func(t *table, strong bool) string{
	"GetItem": func(t *table, strong bool) string {
		in := getting("a", 1)
		in.ConsistentRead = aws.Bool(strong)
		out, err := t.client.GetItem(t.Context(), in)
		require.NoError(t, err)
		return amounts(out.Item)
	},
	"BatchGetItem": func(t *table, strong bool) string {
		out, err := t.client.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			"tab": {Keys: []object{keyOf("a", 1)}, ConsistentRead: aws.Bool(strong)},
		}})
		require.NoError(t, err)
		return amounts(out.Responses["tab"]...)
	},
	"Query": func(t *table, strong bool) string {
		in := querying("", "a")
		in.ConsistentRead = aws.Bool(strong)
		out, err := t.client.Query(t.Context(), in)
		require.NoError(t, err)
		return amounts(out.Items...)
	},
	"Scan": func(t *table, strong bool) string {
		out, err := t.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("tab"), ConsistentRead: aws.Bool(strong)})
		require.NoError(t, err)
		return amounts(out.Items...)
	},
}

// amounts returns the amounts of items that exist, separated by spaces.
func amounts(items ...object) string {
	var all []string
	for _, item := range items {
		if v, ok := item["amount"].(*types.AttributeValueMemberN); ok {
			all = append(all, v.Value)
		}
	}
	return strings.Join(all, " ")
}

func (t *table) add(amount int, partitions ...string) {
	t.Helper()
	require.NoError(t, done(t.Context(), t.client.TransactWriteItems, adding(amount, partitions...)))
}

func TestAStaleReadReturnsAnItemAsItWas(t *testing.T) {
	t.Parallel()
	for operation, read := range readsOfOne {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			tab.db.Clock().Freeze()
			stale := tab.db.Inject(dynamotest.StaleReads(time.Second, time.Second))
			eventual := func() string { return read(tab, false) }
			strong := func() string { return read(tab, true) }

			tab.put("a", 1, object{"amount": n(1)})
			assert.Empty(t, eventual(), "it is not there yet")
			assert.Equal(t, "1", strong())
			tab.db.Clock().Advance(time.Second)
			assert.Equal(t, "1", eventual())

			require.NoError(t, done(t.Context(), tab.client.UpdateItem, setting("a", 1, "SET amount = :a", object{":a": n(2)})))
			assert.Equal(t, "1", eventual(), "it has its earlier version")
			assert.Equal(t, "2", strong())
			tab.db.Clock().Advance(time.Second - 1)
			tab.add(1, "a")
			assert.Equal(t, "1", eventual(), "and still has")
			assert.Equal(t, "3", strong())
			tab.db.Clock().Advance(1)
			assert.Equal(t, "2", eventual())
			tab.db.Clock().Advance(time.Second)
			assert.Equal(t, "3", eventual())

			require.NoError(t, done(t.Context(), tab.client.DeleteItem, deleting("a", 1)))
			assert.Equal(t, "3", eventual(), "it is still there")
			assert.Empty(t, strong())
			tab.db.Clock().Advance(time.Second)
			assert.Empty(t, eventual())

			tab.put("a", 1, object{"amount": n(4)})
			assert.Equal(t, 8, stale.Fired())
			stale.Remove()
			assert.Equal(t, "4", eventual())
		})
	}
}

func TestATableHasNoPastBeforeTheInjection(t *testing.T) {
	t.Parallel()
	for _, read := range readsOfOne {
		tab := newTable(t)
		tab.put("a", 1, object{"amount": n(1)})
		tab.db.Inject(dynamotest.StaleReads(time.Hour, time.Hour))
		tab.add(1, "a")
		assert.Equal(t, "1", read(tab, false))
	}
}

func TestRemovedStaleReadsLeaveNoPastForLaterOnes(t *testing.T) {
	t.Parallel()
	for _, read := range readsOfOne {
		tab := newTable(t)
		stale := tab.db.Inject(dynamotest.StaleReads(time.Hour, time.Hour))
		tab.put("a", 1, object{"amount": n(1)})
		stale.Remove()
		tab.db.Inject(dynamotest.StaleReads(time.Hour, time.Hour))
		assert.Equal(t, "1", read(tab, false))
	}
}

func TestWritesTransactionsAndIndexesAreNotStale(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	stale := tab.db.Inject(dynamotest.StaleReads(time.Hour, time.Hour))
	tab.put("a", 1, object{"amount": n(1), "g": s("x"), "l": s("y")})
	ifThere := setting("a", 1, "ADD amount :a", object{":a": n(1)})
	ifThere.ConditionExpression = aws.String("attribute_exists(amount)")
	out, err := tab.client.UpdateItem(t.Context(), ifThere)
	require.NoError(t, err)
	assert.Empty(t, out.Attributes)
	got, err := tab.client.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: aws.String("tab"), Key: keyOf("a", 1)}},
	}})
	require.NoError(t, err)
	assert.Equal(t, "2", amounts(got.Responses[0].Item))
	for index, partition := range map[string]string{"global": "x", "local": "a"} {
		out, err := tab.client.Query(t.Context(), querying(index, partition))
		require.NoError(t, err)
		assert.Len(t, out.Items, 1)
		scanned, err := tab.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("tab"), IndexName: aws.String(index)})
		require.NoError(t, err)
		assert.Len(t, scanned.Items, 1)
	}
	assert.Zero(t, stale.Fired())
}

func TestAnExpiredItemIsStillThereInAStaleRead(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Clock().Freeze()
	tab.expireBy("expires")
	tab.db.Inject(dynamotest.StaleReads(time.Second, time.Second))
	tab.put("a", 1, object{"amount": n(1), "expires": n(tab.db.Clock().Now().Add(time.Minute).Unix())})
	tab.db.Clock().Advance(time.Minute)
	for operation, read := range readsOfOne {
		assert.Empty(t, read(tab, true), operation)
		assert.Equal(t, "1", read(tab, false), operation)
	}
}

func TestAStaleReadCostsHalfOfWhatItReturns(t *testing.T) {
	t.Parallel()
	for operation, read := range readsOfOne {
		tab := newTable(t)
		tab.put("a", 1, object{"amount": n(1), "fill": fill(9<<10, 30)})
		tab.db.Inject(dynamotest.StaleReads(time.Hour, time.Hour))
		tab.put("a", 1, object{"amount": n(1)})
		calls := tab.db.Record()
		read(tab, false)
		read(tab, true)
		assert.InDelta(t, 1.5, calls.Calls()[0].ReadUnits, 0, operation)
		assert.InDelta(t, 1, calls.Calls()[1].ReadUnits, 0, operation)
		assert.Equal(t, []string{"StaleReads"}, calls.Calls()[0].Faults)
		assert.Empty(t, calls.Calls()[1].Faults)
	}
}

// past is the model of a table with partitions a, b and c: all states of each partition.
type past map[string][]state

// state is the amounts of a partition's items by sort key after a change.
type state struct {
	since  time.Time
	amount map[int]string
}

// change makes a random write of one to three items, of one partition or of several.
func (p past) change(t *table, r *rand.Rand) {
	t.Helper()
	in := &dynamodb.TransactWriteItemsInput{}
	written := map[string]bool{}
	for range 1 + r.IntN(3) {
		partition, number := string("abc"[r.IntN(3)]), r.IntN(4)
		name := fmt.Sprint(partition, number)
		if written[name] {
			continue
		}
		written[name] = true
		next := map[int]string{}
		if states := p[partition]; len(states) > 0 {
			for number, amount := range states[len(states)-1].amount {
				next[number] = amount
			}
		}
		if delete(next, number); r.IntN(3) == 0 {
			in.TransactItems = append(in.TransactItems, types.TransactWriteItem{
				Delete: &types.Delete{TableName: aws.String("tab"), Key: keyOf(partition, number)},
			})
		} else {
			next[number] = fmt.Sprint(r.IntN(1000))
			in.TransactItems = append(in.TransactItems, types.TransactWriteItem{
				Put: &types.Put{TableName: aws.String("tab"), Item: putting(partition, number, object{"amount": n(next[number])}).Item},
			})
		}
		p[partition] = append(p[partition], state{t.db.Clock().Now(), next})
	}
	require.NoError(t, done(t.Context(), t.client.TransactWriteItems, in))
}

// possible returns the amounts that a read of some items can return, without repetition.
func (p past) possible(now time.Time, least, most time.Duration, partition string, numbers ...int) (all []string) {
	states := append([]state{{}}, p[partition]...)
	for i, s := range states {
		if !s.since.After(now.Add(-least)) && (i+1 == len(states) || states[i+1].since.After(now.Add(-most))) {
			var seen []string
			for _, number := range numbers {
				if amount, ok := s.amount[number]; ok {
					seen = append(seen, amount)
				}
			}
			if text := strings.Join(seen, " "); !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

func TestStaleReadsReturnEachStateOfAPartitionWithinTheirAges(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for range 4 {
		tab, model := newTable(t), past{}
		tab.db.Clock().Freeze()
		least := time.Duration(r.IntN(3)) * time.Second
		most := least + time.Duration(r.IntN(5))*time.Second + 1
		tab.db.Inject(dynamotest.StaleReads(least, most))
		for range 1 + r.IntN(20) {
			model.change(tab, r)
			tab.db.Clock().Advance(time.Duration(r.IntN(2000)) * time.Millisecond)
		}
		now := tab.db.Clock().Now()
		seen := map[string]map[string]bool{}
		see := func(what, amounts string) {
			if seen[what] == nil {
				seen[what] = map[string]bool{}
			}
			seen[what][amounts] = true
		}
		for range 120 {
			scan, err := tab.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("tab")})
			require.NoError(t, err)
			byPartition := map[string][]object{"a": nil, "b": nil, "c": nil}
			for _, item := range scan.Items {
				p := item["p"].(*types.AttributeValueMemberS).Value
				byPartition[p] = append(byPartition[p], item)
			}
			for p, items := range byPartition {
				see("scan "+p, amounts(items...))
				query, err := tab.client.Query(t.Context(), querying("", p))
				require.NoError(t, err)
				see("query "+p, amounts(query.Items...))
			}
			get := getting("a", 1)
			get.ConsistentRead = nil
			got, err := tab.client.GetItem(t.Context(), get)
			require.NoError(t, err)
			see("get", amounts(got.Item))
		}
		for _, p := range []string{"a", "b", "c"} {
			want := model.possible(now, least, most, p, 0, 1, 2, 3)
			for _, operation := range []string{"scan ", "query "} {
				var got []string
				for amounts := range seen[operation+p] {
					got = append(got, amounts)
				}
				assert.ElementsMatch(t, want, got, operation+p)
			}
		}
		var got []string
		for amounts := range seen["get"] {
			got = append(got, amounts)
		}
		assert.ElementsMatch(t, model.possible(now, least, most, "a", 1), got)
	}
}

func TestPagesOfAQueryAreOlderOrNewerThanTheLast(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	for i := range 4 {
		tab.put("a", i, object{"amount": n(0)})
	}
	tab.db.Inject(dynamotest.StaleReads(0, time.Hour))
	in := &dynamodb.TransactWriteItemsInput{}
	for i := range 4 {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{
			Put: &types.Put{TableName: aws.String("tab"), Item: putting("a", i, object{"amount": n(1)}).Item},
		})
	}
	require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, in))
	pages := map[string]bool{}
	for range 200 {
		query := querying("", "a")
		query.Limit = aws.Int32(2)
		var both []string
		for range 2 {
			out, err := tab.client.Query(t.Context(), query)
			require.NoError(t, err)
			both, query.ExclusiveStartKey = append(both, amounts(out.Items...)), out.LastEvaluatedKey
		}
		pages[strings.Join(both, ", ")] = true
	}
	want := map[string]bool{}
	for _, first := range []string{"0 0", "1 0", "1 1"} { // the transaction is written in order
		for _, second := range []string{"0 0", "1 0", "1 1"} {
			want[first+", "+second] = true
		}
	}
	assert.Equal(t, want, pages)
}

func TestPartitionsOfAScanAreStaleEachByItself(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.StaleReads(0, time.Hour))
	tab.put("a", 1, object{"amount": n(1)})
	tab.put("b", 1, object{"amount": n(2)})
	seen := map[string]bool{}
	for range 100 {
		out, err := tab.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("tab")})
		require.NoError(t, err)
		seen[amounts(out.Items...)] = true
	}
	assert.Len(t, seen, 4)
}

func TestItemsOfABatchAreStaleEachByItself(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	keys := []object{keyOf("a", 1), keyOf("a", 2), keyOf("b", 1)}
	for i, p := range []string{"a", "a", "b"} {
		tab.put(p, 1+i%2, object{"amount": n(0)})
	}
	tab.create("other")
	tab.db.Inject(dynamotest.StaleReads(0, time.Hour))
	for i, p := range []string{"a", "a", "b"} {
		tab.put(p, 1+i%2, object{"amount": n(1)})
	}
	_, err := tab.client.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("other"), Item: putting("a", 1, object{"amount": n(1)}).Item,
	})
	require.NoError(t, err)
	seen := map[string]bool{}
	for range 400 {
		out, err := tab.client.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			"tab": {Keys: keys}, "other": {Keys: keys[:1], ConsistentRead: aws.Bool(true)},
		}})
		require.NoError(t, err)
		seen[amounts(out.Responses["tab"]...)] = true
		assert.Equal(t, "1", amounts(out.Responses["other"]...), "it is read consistently")
	}
	assert.Len(t, seen, 8)
}

func TestOnlySelectedItemsOfABatchAreStale(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.StaleReads(time.Hour, time.Hour), dynamotest.Key(object{"p": s("b")}))
	tab.put("a", 1, object{"amount": n(1)})
	tab.put("b", 1, object{"amount": n(2)})
	out, err := tab.client.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		"tab": {Keys: []object{keyOf("a", 1), keyOf("b", 1)}},
	}})
	require.NoError(t, err)
	assert.Equal(t, "1", amounts(out.Responses["tab"]...))
}

func TestTheEarliestOfSeveralStatesIsSeen(t *testing.T) {
	t.Parallel()
	for _, ages := range [][]time.Duration{{time.Second, time.Minute}, {time.Minute, time.Second}} {
		for operation, read := range readsOfOne {
			tab := newTable(t)
			tab.db.Clock().Freeze()
			for _, age := range ages {
				tab.db.Inject(dynamotest.StaleReads(age, age))
			}
			for amount := range 3 {
				tab.put("a", 1, object{"amount": n(amount)})
				tab.db.Clock().Advance(31 * time.Second)
			}
			assert.Equal(t, "1", read(tab, false), operation)
		}
	}
}

func TestTheSeedDecidesWhatStaleReadsReturn(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (seen []string) {
		tab := newTable(t, dynamotest.WithSeed(seed))
		tab.db.Clock().Freeze()
		tab.db.Inject(dynamotest.StaleReads(0, time.Minute), dynamotest.Chance(0.8))
		for i := range 20 {
			tab.put("a", 1, object{"amount": n(i)})
			tab.put("b", 1, object{"amount": n(i)})
			tab.db.Clock().Advance(time.Second)
			for _, operation := range []string{"GetItem", "BatchGetItem", "Query", "Scan"} {
				seen = append(seen, readsOfOne[operation](tab, false))
			}
		}
		return seen
	}
	one, again := run(1), run(1)
	assert.Equal(t, one, again)
	assert.NotEqual(t, one, run(2))
}

func TestReadsInAStormAreStale(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Clock().Freeze()
	calls := tab.db.Record()
	calm := tab.db.Storm(0.2)
	for range 60 {
		_ = done(t.Context(), tab.once().Query, querying("", "a"))
	}
	calm()
	stale := 0
	for _, call := range calls.Calls() {
		if slices.Contains(call.Faults, "StaleReads") {
			assert.Equal(t, "Query", call.Operation)
			stale++
		}
	}
	assert.Greater(t, stale, 2)
}

func TestStaleReadsGoOnBesideWrites(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.StaleReads(0, time.Hour))
	ended := make(chan error)
	for _, read := range readsOfOne {
		go func() {
			for range 300 {
				read(tab, false)
			}
			ended <- nil
		}()
	}
	go func() {
		var err error
		for range 300 {
			if err == nil {
				err = done(t.Context(), tab.client.TransactWriteItems, adding(1, "a", "b"))
			}
		}
		ended <- err
	}()
	for range len(readsOfOne) + 1 {
		require.NoError(t, <-ended)
	}
	assert.Equal(t, "300", tab.amount("a"))
}
