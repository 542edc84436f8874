package dynamotest_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

func TestWhatIsThrottledIsChosenByTableOperationAndKey(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		when      []dynamotest.When
		throttled bool
	}{
		"every call":        {nil, true},
		"this table":        {[]dynamotest.When{dynamotest.Table("tab")}, true},
		"another table":     {[]dynamotest.When{dynamotest.Table("other")}, false},
		"this operation":    {[]dynamotest.When{dynamotest.On("GetItem", "PutItem")}, true},
		"another operation": {[]dynamotest.When{dynamotest.On("GetItem")}, false},
		"this item":         {[]dynamotest.When{dynamotest.Key(keyOf("a", 1))}, true},
		"its partition":     {[]dynamotest.When{dynamotest.Key(object{"p": s("a")})}, true},
		"another item":      {[]dynamotest.When{dynamotest.Key(keyOf("a", 2))}, false},
		"an index":          {[]dynamotest.When{dynamotest.Index("global")}, false},
		"after the first":   {[]dynamotest.When{dynamotest.After(1)}, false},
		"no time":           {[]dynamotest.When{dynamotest.Times(0)}, false},
		"by chance always":  {[]dynamotest.When{dynamotest.Chance(1)}, true},
		"by chance never":   {[]dynamotest.When{dynamotest.Chance(0)}, false},
		"matching the input": {[]dynamotest.When{dynamotest.Matching(func(_ string, in any) bool {
			return len(in.(*dynamodb.PutItemInput).Item) == 2
		})}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			injection := tab.db.Inject(dynamotest.Throttle(), test.when...)

			err := done(t.Context(), tab.once().PutItem, putting("a", 1, nil))

			if !test.throttled {
				require.NoError(t, err)
				assert.Zero(t, injection.Fired())
				return
			}
			var throttled *types.ProvisionedThroughputExceededException
			require.ErrorAs(t, err, &throttled)
			assert.Equal(t, 1, injection.Fired())
			injection.Remove()
			assert.Empty(t, tab.get("a", 1), "the call must have had no effect")
		})
	}
}

func TestAQueryOfAnIndexIsThrottledByItsName(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Throttle(), dynamotest.Index("global"))
	var throttled *types.ProvisionedThroughputExceededException
	require.ErrorAs(t, done(t.Context(), tab.once().Query, querying("global", "a")), &throttled)
	require.NoError(t, done(t.Context(), tab.once().Query, querying("local", "a")))
}

func TestTheClientRetriesWhatPasses(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dynamotest.Fault{
		"throttling":              dynamotest.Throttle(),
		"an internal error":       dynamotest.InternalError(),
		"a lost reply":            dynamotest.LoseReply(),
		"a cut connection":        dynamotest.CutConnection(),
		"any error that may pass": dynamotest.Refuse(&types.RequestLimitExceeded{Message: aws.String("slow down")}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			calls := tab.db.Record()
			tab.db.Inject(fault, dynamotest.Times(2))
			tab.put("a", 1, nil)
			assert.Len(t, calls.Calls("PutItem"), 3)
		})
	}
}

func TestALostReplyIsOfACallThatTookEffect(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.LoseReply(), dynamotest.On("PutItem"))
	require.ErrorIs(t, done(t.Context(), tab.once().PutItem, putting("a", 1, nil)), io.ErrUnexpectedEOF)
	assert.NotEmpty(t, tab.get("a", 1))
}

func TestACutConnectionIsOfACallWithoutEffect(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.CutConnection(), dynamotest.On("PutItem"))
	require.ErrorIs(t, done(t.Context(), tab.once().PutItem, putting("a", 1, nil)), io.ErrUnexpectedEOF)
	assert.Empty(t, tab.get("a", 1))
}

func TestATransactionIsCancelledForTheActionsThatAreHit(t *testing.T) {
	t.Parallel()
	for code, fault := range map[string]dynamotest.Fault{
		"TransactionConflict":           dynamotest.Conflict(),
		"ProvisionedThroughputExceeded": dynamotest.Throttle(),
	} {
		tab := newTable(t)
		tab.db.Inject(fault, dynamotest.Key(keyOf("b", 1)))

		var cancelled *types.TransactionCanceledException
		require.ErrorAs(t, done(t.Context(), tab.once().TransactWriteItems, adding(1, "a", "b")), &cancelled)
		require.Len(t, cancelled.CancellationReasons, 2)
		assert.Equal(t, "None", *cancelled.CancellationReasons[0].Code)
		assert.Equal(t, code, *cancelled.CancellationReasons[1].Code)
		assert.Empty(t, tab.get("a", 1))
		require.NoError(t, done(t.Context(), tab.once().TransactWriteItems, adding(1, "a", "c")), "which has no part in it")
	}
}

func TestAConflictMeetsWritesAndNoReads(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Conflict())
	client := tab.once()
	var conflict *types.TransactionConflictException
	require.ErrorAs(t, done(t.Context(), client.PutItem, putting("a", 1, nil)), &conflict)
	require.ErrorAs(t, done(t.Context(), client.UpdateItem, setting("a", 1, "SET x = :x", object{":x": n(1)})), &conflict)
	require.ErrorAs(t, done(t.Context(), client.DeleteItem, deleting("a", 1)), &conflict)
	require.NoError(t, done(t.Context(), client.GetItem, getting("a", 1)))
	require.NoError(t, done(t.Context(), client.Query, querying("", "a")))
}

// batch writes some items.
func batch(partitions ...string) *dynamodb.BatchWriteItemInput {
	in := &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{}}
	for _, p := range partitions {
		in.RequestItems["tab"] = append(in.RequestItems["tab"], types.WriteRequest{PutRequest: &types.PutRequest{Item: keyOf(p, 1)}})
	}
	return in
}

func batchOfKeys(partitions ...string) *dynamodb.BatchGetItemInput {
	var keys []map[string]types.AttributeValue
	for _, p := range partitions {
		keys = append(keys, keyOf(p, 1))
	}
	return &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		"tab": {Keys: keys, ConsistentRead: aws.Bool(true)},
	}}
}

func TestABatchComesBackInPartUnprocessed(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dynamotest.Fault{
		"one of them":       dynamotest.Unprocessed(1),
		"what conflicts":    dynamotest.Conflict(),
		"what is throttled": dynamotest.Throttle(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			injection := tab.db.Inject(fault, dynamotest.Key(keyOf("b", 1)), dynamotest.On("BatchWriteItem"))

			written, err := tab.client.BatchWriteItem(t.Context(), batch("a", "b", "c"))
			require.NoError(t, err)
			assert.Equal(t, batch("b").RequestItems, written.UnprocessedItems)
			assert.NotEmpty(t, tab.get("a", 1))
			assert.Empty(t, tab.get("b", 1))

			injection.Remove()
			again, err := tab.client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: written.UnprocessedItems})
			require.NoError(t, err)
			assert.Empty(t, again.UnprocessedItems)
			assert.NotEmpty(t, tab.get("b", 1))
		})
	}
}

func TestABatchOfReadsComesBackInPartUnprocessed(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	for _, p := range []string{"a", "b", "c"} {
		tab.put(p, 1, nil)
	}
	tab.db.Inject(dynamotest.Unprocessed(2), dynamotest.Times(1))
	in, got := batchOfKeys("a", "b", "c"), []object(nil)
	rounds := 0
	for len(in.RequestItems) > 0 {
		out, err := tab.client.BatchGetItem(t.Context(), in)
		require.NoError(t, err)
		got = append(got, out.Responses["tab"]...)
		in.RequestItems = out.UnprocessedKeys
		rounds++
	}
	assert.Equal(t, 2, rounds)
	assert.ElementsMatch(t, []object{keyOf("a", 1), keyOf("b", 1), keyOf("c", 1)}, got)
}

func TestABatchOfWhichNothingCanBeProcessedIsRefused(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Throttle())
	var throttled *types.ProvisionedThroughputExceededException
	require.ErrorAs(t, done(t.Context(), tab.once().BatchWriteItem, batch("a", "b")), &throttled)
	require.ErrorAs(t, done(t.Context(), tab.once().BatchGetItem, batchOfKeys("a", "b")), &throttled)
}

func TestSmallPagesAddUpToTheWhole(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	for i := range 7 {
		tab.put("a", i, nil)
	}
	tab.db.Inject(dynamotest.SmallPages(3))
	calls := tab.db.Record()
	pages := dynamodb.NewQueryPaginator(tab.client, querying("", "a"))
	var got []object
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		got = append(got, page.Items...)
	}
	assert.Len(t, got, 7)
	for i, item := range got {
		assert.Equal(t, keyOf("a", i), item)
	}
	assert.Len(t, calls.Calls("Query"), 3)
}

func TestAnIndexLagsUntilTheClockHasMoved(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Clock().Freeze()
	tab.db.Inject(dynamotest.DelayIndex(time.Second, time.Second), dynamotest.Key(object{"p": s("late")}))
	tab.put("late", 1, object{"g": s("x")})
	tab.put("early", 1, object{"g": s("x")})
	found := func() (found []string) {
		out, err := tab.client.Query(t.Context(), querying("global", "x"))
		require.NoError(t, err)
		for _, item := range out.Items {
			found = append(found, item["p"].(*types.AttributeValueMemberS).Value)
		}
		return found
	}

	assert.Equal(t, []string{"early"}, found(), "what was written later can come first")
	tab.db.Clock().Advance(time.Second - 1)
	assert.Equal(t, []string{"early"}, found())
	tab.db.Clock().Advance(1)
	assert.ElementsMatch(t, []string{"early", "late"}, found())
	assert.NotEmpty(t, tab.get("late", 1), "the table itself does not lag")
}

func TestTheChangesOfOneItemReachAnIndexInOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		tab := newTable(t, dynamotest.Seed(seed))
		tab.db.Clock().Freeze()
		tab.db.Inject(dynamotest.DelayIndex(0, time.Second))
		for version := range 10 {
			tab.put("a", 1, object{"g": s("x"), "kept": n(version)})
		}
		last := -1
		for range 20 {
			out, err := tab.client.Query(t.Context(), querying("global", "x"))
			require.NoError(t, err)
			for _, item := range out.Items {
				var version int
				_, err := fmt.Sscan(item["kept"].(*types.AttributeValueMemberN).Value, &version)
				require.NoError(t, err)
				require.GreaterOrEqual(t, version, last)
				last = version
			}
			tab.db.Clock().Advance(60 * time.Millisecond)
		}
		require.Equal(t, 9, last)
	}
}

func TestATransactionThatIsHeldConflictsWithOthersOnItsItems(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.put("a", 1, object{"amount": n(1)})
	client := tab.once()
	held := false
	tab.db.Inject(dynamotest.Hold(func(ctx context.Context) {
		held = true
		var conflict *types.TransactionConflictException
		var cancelled *types.TransactionCanceledException
		assert.ErrorAs(t, done(ctx, client.PutItem, putting("a", 1, nil)), &conflict)
		assert.ErrorAs(t, done(ctx, client.UpdateItem, setting("b", 1, "SET x = :x", object{":x": n(1)})), &conflict)
		assert.ErrorAs(t, done(ctx, client.TransactGetItems, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
			{Get: &types.Get{TableName: aws.String("tab"), Key: keyOf("c", 1)}},
			{Get: &types.Get{TableName: aws.String("tab"), Key: keyOf("a", 1)}},
		}}), &cancelled)
		assert.Equal(t, "TransactionConflict", *cancelled.CancellationReasons[1].Code)
		assert.ErrorAs(t, done(ctx, client.TransactWriteItems, adding(1, "c", "b")), &cancelled)
		assert.Equal(t, "TransactionConflict", *cancelled.CancellationReasons[1].Code)
		out, err := client.BatchWriteItem(ctx, batch("a", "c"))
		assert.NoError(t, err)
		assert.Equal(t, batch("a").RequestItems, out.UnprocessedItems)
		assert.Equal(t, "1", tab.amount("a"), "a plain read sees what was there")
	}), dynamotest.Times(1))

	require.NoError(t, done(t.Context(), client.TransactWriteItems, adding(5, "a", "b")))

	assert.True(t, held)
	assert.Equal(t, "6", tab.amount("a"))
	require.NoError(t, done(t.Context(), client.TransactWriteItems, adding(1, "a", "b")), "nothing is held any more")
	assert.Equal(t, "6", tab.amount("b"))
}

func TestATransactionThatIsTornIsSeenInPart(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seed := range uint64(20) {
		tab := newTable(t, dynamotest.Seed(seed))
		tab.db.Inject(dynamotest.Tear(func(ctx context.Context) {
			seen[tab.amount("a")+tab.amount("b")+tab.amount("c")] = true
			var cancelled *types.TransactionCanceledException
			assert.ErrorAs(t, done(ctx, tab.once().TransactGetItems, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
				{Get: &types.Get{TableName: aws.String("tab"), Key: keyOf("c", 1)}},
			}}), &cancelled, "a read in a transaction does not see a part")
		}))
		require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, adding(1, "a", "b", "c")))
		assert.Equal(t, "111", tab.amount("a")+tab.amount("b")+tab.amount("c"))
	}
	assert.Equal(t, map[string]bool{"1": true, "11": true}, seen)
}

func TestTransactionsOnOneItemConflictWhileEachTakesItsTime(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Hold(dynamotest.For(5 * time.Millisecond)))
	client := tab.once()
	var mu sync.Mutex
	var wait sync.WaitGroup
	made := 0
	for range 10 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			err := done(t.Context(), client.TransactWriteItems, adding(1, "a"))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made++
			} else {
				var cancelled *types.TransactionCanceledException
				assert.ErrorAs(t, err, &cancelled)
			}
		}()
	}
	wait.Wait()
	assert.NotZero(t, made)
	assert.Equal(t, fmt.Sprint(made), tab.amount("a"), "those that succeeded, and no others, have an effect")
}

func TestLatencyEndsWithTheContext(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Latency(time.Hour, 2*time.Hour), dynamotest.On("PutItem"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, done(ctx, tab.once().PutItem, putting("a", 1, nil)), context.DeadlineExceeded)
	assert.Empty(t, tab.get("a", 1))
}

func TestSeveralFaultsHappenToOneCall(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	calls := tab.db.Record()
	tab.db.Inject(dynamotest.SmallPages(1))
	tab.db.Inject(dynamotest.LoseReply(), dynamotest.Times(1))
	require.NoError(t, done(t.Context(), tab.client.Query, querying("", "a")))
	require.Len(t, calls.Calls(), 2)
	assert.Equal(t, "SmallPages, LoseReply", calls.Calls()[0].Fault)
	assert.Equal(t, "SmallPages", calls.Calls()[1].Fault)
}

// weather runs 200 calls in a storm, from several goroutines that share no keys, and tells what happened to each.
func weather(t *testing.T, seed uint64, goroutines int) map[string]string {
	t.Helper()
	tab := newTable(t, dynamotest.Seed(seed))
	tab.db.Storm(0.2)
	var mu sync.Mutex
	happened := map[string]string{}
	var wait sync.WaitGroup
	for g := range goroutines {
		wait.Add(1)
		go func() {
			defer wait.Done()
			client := tab.once()
			for i := g; i < 200; i += goroutines {
				p := fmt.Sprint(i % 20)
				if i%20%goroutines != g%goroutines {
					continue
				}
				err := done(t.Context(), client.UpdateItem, setting(p, 1, "ADD x :x", object{":x": n(1)}))
				mu.Lock()
				happened[fmt.Sprint(p, " ", i)] = fmt.Sprint(err != nil)
				mu.Unlock()
			}
		}()
	}
	wait.Wait()
	return happened
}

func TestTheSameSeedMakesTheSameFaultsInWhateverOrderGoroutinesRun(t *testing.T) {
	t.Parallel()
	one := weather(t, 1, 1)
	assert.Equal(t, one, weather(t, 1, 1))
	assert.Equal(t, one, weather(t, 1, 4))
	assert.NotEqual(t, one, weather(t, 2, 1))
}

func TestAStormEnds(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	calm := tab.db.Storm(1)
	require.Error(t, done(t.Context(), tab.client.PutItem, putting("a", 1, nil)))
	calm()
	tab.put("a", 1, nil)
}
