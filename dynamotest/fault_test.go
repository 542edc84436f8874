package dynamotest_test

import (
	"context"
	"fmt"
	"io"
	"math"
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
		"every call":         {nil, true},
		"this table":         {[]dynamotest.When{dynamotest.Table("tab")}, true},
		"another table":      {[]dynamotest.When{dynamotest.Table("other")}, false},
		"this operation":     {[]dynamotest.When{dynamotest.On("GetItem", "PutItem")}, true},
		"another operation":  {[]dynamotest.When{dynamotest.On("GetItem")}, false},
		"this item":          {[]dynamotest.When{dynamotest.Key(keyOf("a", 1))}, true},
		"its partition":      {[]dynamotest.When{dynamotest.Key(object{"p": s("a")})}, true},
		"another item":       {[]dynamotest.When{dynamotest.Key(keyOf("a", 2))}, false},
		"an index of it":     {[]dynamotest.When{dynamotest.Index("global")}, true},
		"an index elsewhere": {[]dynamotest.When{dynamotest.Index("other")}, false},
		"after the first":    {[]dynamotest.When{dynamotest.After(1)}, false},
		"by chance always":   {[]dynamotest.When{dynamotest.Chance(1)}, true},
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

// batch returns a request that writes some items.
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
		tab := newTable(t, dynamotest.WithSeed(seed))
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

func TestATransactionThatIsTornIsSeenInAnyPart(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seed := range uint64(60) {
		tab := newTable(t, dynamotest.WithSeed(seed))
		part := func() (part string) {
			for _, p := range []string{"a", "b", "c"} {
				if tab.amount(p) != "" {
					part += p
				}
			}
			return part
		}
		tear := tab.db.Inject(dynamotest.Tear(func(ctx context.Context) {
			seen[part()] = true
			var cancelled *types.TransactionCanceledException
			gets := &dynamodb.TransactGetItemsInput{}
			for _, p := range []string{"a", "b", "c"} {
				gets.TransactItems = append(gets.TransactItems, types.TransactGetItem{Get: &types.Get{TableName: aws.String("tab"), Key: keyOf(p, 1)}})
			}
			assert.ErrorAs(t, done(ctx, tab.once().TransactGetItems, gets), &cancelled, "a read in a transaction does not see a part")
		}))
		require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, adding(1, "a", "b", "c")))
		assert.Equal(t, "abc", part())
		assert.Equal(t, 1, tear.Fired())
	}
	assert.Equal(t, map[string]bool{"a": true, "b": true, "c": true, "ab": true, "ac": true, "bc": true}, seen)
}

func TestATransactionThatWritesOneItemIsNotTorn(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tear := tab.db.Inject(dynamotest.Tear(func(context.Context) { assert.Fail(t, "there are no parts") }))
	in := adding(1, "a")
	in.TransactItems = append([]types.TransactWriteItem{{ConditionCheck: &types.ConditionCheck{
		TableName: aws.String("tab"), Key: keyOf("b", 1), ConditionExpression: aws.String("attribute_not_exists(p)"),
	}}}, in.TransactItems...)
	require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, in))
	assert.Zero(t, tear.Fired())
}

func TestAPauseIsForATransactionThatComesToIt(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	hold := tab.db.Inject(dynamotest.Hold(func(context.Context) {}), dynamotest.Times(1))
	tear := tab.db.Inject(dynamotest.Tear(func(context.Context) {}), dynamotest.Times(1))
	failing := adding(1, "a", "b")
	failing.TransactItems[0].Update.ConditionExpression = aws.String("attribute_exists(p)")
	require.Error(t, done(t.Context(), tab.client.TransactWriteItems, failing))
	assert.Zero(t, hold.Fired()+tear.Fired())
	require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, adding(1, "a", "b")))
	assert.Equal(t, 2, hold.Fired()+tear.Fired())
}

func TestAClientThatHasGoneDuringAPauseDoesNotKnowTheOutcome(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	ctx, cancel := context.WithCancel(t.Context())
	tab.db.Inject(dynamotest.Hold(func(context.Context) { cancel() }), dynamotest.Times(1))
	require.ErrorIs(t, done(ctx, tab.once().TransactWriteItems, adding(1, "a")), context.Canceled)
	assert.Equal(t, "1", tab.amount("a"), "here it was made")
}

func TestAPauseThatDoesNotComeBackLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Hold(func(context.Context) { panic("the test has failed") }), dynamotest.Times(1))
	assert.Panics(t, func() { _ = done(t.Context(), tab.once().TransactWriteItems, adding(1, "a")) })
	tab.put("a", 1, nil)
}

func TestCallsOfAPauseDoNotMeetItsFault(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Hold(func(ctx context.Context) {
		assert.NoError(t, done(ctx, tab.client.TransactWriteItems, adding(1, "b")))
	}))
	require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, adding(1, "a")))
}

func TestATableThatIsDeletedDuringATransactionStaysDeleted(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Hold(func(ctx context.Context) {
		assert.NoError(t, done(ctx, tab.client.DeleteTable, &dynamodb.DeleteTableInput{TableName: aws.String("tab")}))
		tab.create("tab")
	}), dynamotest.Times(1))
	require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, adding(1, "a")))
	assert.Empty(t, tab.get("a", 1), "the new table has nothing to do with it")
	tab.put("a", 1, nil)
}

func TestABatchThatIsWrongIsRefusedAlsoUnderAFault(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Unprocessed(25))
	assert.ErrorContains(t, done(t.Context(), tab.client.BatchWriteItem, batch("a", "a")), "duplicates")
	assert.ErrorContains(t, done(t.Context(), tab.client.BatchWriteItem, &dynamodb.BatchWriteItemInput{
		RequestItems: map[string][]types.WriteRequest{},
	}), "ValidationException")
	missing := batchOfKeys("a")
	missing.RequestItems = map[string]types.KeysAndAttributes{"missing": missing.RequestItems["tab"]}
	assert.ErrorContains(t, done(t.Context(), tab.client.BatchGetItem, missing), "ResourceNotFoundException")
}

func TestThrottlingOfAllItemsOfABatchByTwoFaultsRefusesIt(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Throttle(), dynamotest.Key(keyOf("a", 1)))
	tab.db.Inject(dynamotest.Throttle(), dynamotest.Key(keyOf("b", 1)))
	var throttled *types.ProvisionedThroughputExceededException
	require.ErrorAs(t, done(t.Context(), tab.once().BatchWriteItem, batch("a", "b")), &throttled)
}

func TestAFaultThatDidNotHappenIsNotCounted(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	throttle := tab.db.Inject(dynamotest.Throttle(), dynamotest.Times(2))
	lost := tab.db.Inject(dynamotest.LoseReply(), dynamotest.Times(1))
	failed := tab.db.Inject(dynamotest.InternalError(), dynamotest.Times(1))
	client := tab.once()
	for range 2 {
		require.Error(t, done(t.Context(), client.PutItem, putting("a", 1, nil)))
	}
	assert.Equal(t, []int{2, 0, 0}, []int{throttle.Fired(), lost.Fired(), failed.Fired()})
	require.Error(t, done(t.Context(), client.PutItem, putting("a", 1, nil)))
	assert.Equal(t, []int{2, 1, 0}, []int{throttle.Fired(), lost.Fired(), failed.Fired()})
	assert.NotEmpty(t, tab.get("a", 1), "whose reply was lost")
}

func TestTwoCutsAreOne(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	first, second := tab.db.Inject(dynamotest.CutConnection()), tab.db.Inject(dynamotest.CutConnection())
	require.ErrorIs(t, done(t.Context(), tab.once().PutItem, putting("a", 1, nil)), io.ErrUnexpectedEOF)
	assert.Equal(t, []int{1, 0}, []int{first.Fired(), second.Fired()})
}

func TestAPauseHappensAfterSomeTransactionsAndThenNoMore(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	held := 0
	hold := tab.db.Inject(dynamotest.Hold(func(context.Context) { held++ }), dynamotest.After(1), dynamotest.Times(1))
	for i, want := range []int{0, 1, 1, 1} {
		require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, adding(1, "a", "b")))
		assert.Equal(t, want, held, i)
	}
	assert.Equal(t, 1, hold.Fired())
}

func TestAFaultOnTheWayOfARefusedCallIsNotCounted(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.InternalError())
	unprocessed := tab.db.Inject(dynamotest.Unprocessed(1))
	pages := tab.db.Inject(dynamotest.SmallPages(1))
	require.Error(t, done(t.Context(), tab.once().BatchWriteItem, batch("a", "b")))
	require.Error(t, done(t.Context(), tab.once().Query, querying("", "a")))
	assert.Zero(t, unprocessed.Fired()+pages.Fired())
}

func TestAMistakeInAnInjectionPanics(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	for want, inject := range map[string]func(){
		`operation "putItem" does not exist`: func() { db.Inject(dynamotest.Throttle(), dynamotest.On("putItem")) },
		"On names one operation or more":     func() { db.Inject(dynamotest.Throttle(), dynamotest.On()) },
		"Table names one table":              func() { db.Inject(dynamotest.Throttle(), dynamotest.Table("a"), dynamotest.Table("b")) },
		"Index names one index":              func() { db.Inject(dynamotest.Throttle(), dynamotest.Index("")) },
		"Key has one attribute":              func() { db.Inject(dynamotest.Throttle(), dynamotest.Key(nil)) },
		"Matching has one function":          func() { db.Inject(dynamotest.Throttle(), dynamotest.Matching(nil)) },
		"Chance(5)":                          func() { db.Storm(5) },
		"Times(0)":                           func() { db.Inject(dynamotest.Throttle(), dynamotest.Times(0)) },
		"After(-1)":                          func() { db.Inject(dynamotest.Throttle(), dynamotest.After(-1)) },
		"SmallPages(0)":                      func() { dynamotest.SmallPages(0) },
		"Unprocessed(-1)":                    func() { dynamotest.Unprocessed(-1) },
		"Chance(0)":                          func() { db.Storm(0) },
		"Refuse(nil)":                        func() { dynamotest.Refuse(nil) },
		"LoseReply: Index only holds":        func() { db.Inject(dynamotest.LoseReply(), dynamotest.Index("i"), dynamotest.On("PutItem")) },
		"SmallPages: Key does not hold":      func() { db.Inject(dynamotest.SmallPages(1), dynamotest.Key(keyOf("a", 1))) },
		"Latency(2s, 1s)":                    func() { dynamotest.Latency(2*time.Second, time.Second) },
		"Hold(nil)":                          func() { dynamotest.Hold(nil) },
		"Tear(nil)":                          func() { dynamotest.Tear(nil) },
		"Pause(nil)":                         func() { dynamotest.Pause(nil) },
		"PauseReply(nil)":                    func() { dynamotest.PauseReply(nil) },
		"Hide(nil)":                          func() { dynamotest.Hide(nil) },
		"LateBy(2s, 1s)":                     func() { dynamotest.LateBy(2*time.Second, time.Second) },
		"Congestion(2s, 1s)":                 func() { dynamotest.Congestion(2*time.Second, time.Second) },
		"Inject needs a fault":               func() { db.Inject(dynamotest.Fault{}) },
		"Conflict does not happen to":        func() { db.Inject(dynamotest.Conflict(), dynamotest.On("GetItem")) },
		"DelayIndex does not affect calls":   func() { db.Inject(dynamotest.DelayIndex(0, 1), dynamotest.On("PutItem")) },
		"StaleReads(2s, 1s)":                 func() { dynamotest.StaleReads(2*time.Second, time.Second) },
		"StaleReads(0, 0)":                   func() { dynamotest.StaleReads(0, 0) },
		"StaleReads does not happen to [":    func() { db.Inject(dynamotest.StaleReads(0, 1), dynamotest.On("PutItem")) },
		"StaleReads does not happen to reads of an index": func() { db.Inject(dynamotest.StaleReads(0, 1), dynamotest.Index("i")) },
		`operation "query" does not exist`:                func() { db.Record().Calls("query") },
	} {
		func() {
			defer func() { assert.Contains(t, fmt.Sprint(recover()), "dynamotest: "+want) }()
			inject()
		}()
	}
}

func TestAnIndexCanLagForEver(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.DelayIndex(0, math.MaxInt64))
	tab.put("a", 1, object{"g": s("x")})
	assert.NotEmpty(t, tab.get("a", 1))
}

func TestTransactionsOnOneItemConflictWhileOneIsHeld(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	client := tab.once()
	begun, end := make(chan struct{}), make(chan struct{})
	tab.db.Inject(dynamotest.Hold(func(context.Context) {
		close(begun)
		<-end
	}), dynamotest.Times(1))
	first := make(chan error, 1)
	go func() { first <- done(t.Context(), client.TransactWriteItems, adding(1, "a")) }()
	<-begun
	for range 10 {
		var cancelled *types.TransactionCanceledException
		require.ErrorAs(t, done(t.Context(), client.TransactWriteItems, adding(1, "a")), &cancelled)
	}
	close(end)
	require.NoError(t, <-first)
	assert.Equal(t, "1", tab.amount("a"))
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
	assert.Equal(t, []string{"SmallPages", "LoseReply"}, calls.Calls()[0].Faults)
	assert.Equal(t, []string{"SmallPages"}, calls.Calls()[1].Faults)
}

// failedCalls makes calls in a storm and returns which failed. Each kind of call has its own
// goroutine, or all run in one.
func failedCalls(t *testing.T, seed uint64, together bool) map[string]bool {
	t.Helper()
	tab := newTable(t, dynamotest.WithSeed(seed))
	tab.db.Clock().Freeze()
	for _, fault := range []dynamotest.Fault{dynamotest.Throttle(), dynamotest.InternalError(), dynamotest.CutConnection()} {
		tab.db.Inject(fault, dynamotest.Chance(0.2))
	}
	client := tab.once()
	kinds := map[string]func() error{}
	for i := range 5 {
		p := fmt.Sprint(i)
		kinds["update "+p] = func() error {
			return done(t.Context(), client.UpdateItem, setting(p, 1, "ADD x :x", object{":x": n(1)}))
		}
		kinds["query "+p] = func() error { return done(t.Context(), client.Query, querying("", p)) }
		kinds["scan "+p] = func() error {
			return done(t.Context(), client.Scan, &dynamodb.ScanInput{
				TableName: aws.String("tab"), Segment: aws.Int32(int32(i)), TotalSegments: aws.Int32(5),
			})
		}
		kinds["transact "+p] = func() error { return done(t.Context(), client.TransactWriteItems, adding(1, "t"+p)) }
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	failed := map[string]bool{}
	run := func(name string, call func() error) {
		for i := range 20 {
			err := call()
			mu.Lock()
			failed[fmt.Sprint(name, " ", i)] = err != nil
			mu.Unlock()
		}
	}
	for name, call := range kinds {
		if together {
			wait.Add(1)
			go func() {
				defer wait.Done()
				run(name, call)
			}()
		} else {
			run(name, call)
		}
	}
	wait.Wait()
	return failed
}

func TestTheSameSeedMakesTheSameFaultsInWhateverOrderCallsCome(t *testing.T) {
	t.Parallel()
	one := failedCalls(t, 1, false)
	assert.Equal(t, one, failedCalls(t, 1, false))
	assert.Equal(t, one, failedCalls(t, 1, true))
	assert.NotEqual(t, one, failedCalls(t, 2, false))
}

func TestAStormEnds(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	calm := tab.db.Storm(1)
	require.Error(t, done(t.Context(), tab.client.PutItem, putting("a", 1, nil)))
	calm()
	tab.put("a", 1, nil)
}
