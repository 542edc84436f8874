package dynamotest_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

func TestALateRequestTakesEffectWhenTheTestSaysSo(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	late := tab.db.Inject(dynamotest.Late(), dynamotest.On("UpdateItem"), dynamotest.Times(1))
	recording := tab.db.Record()
	add := setting("a", 1, "ADD amount :a", object{":a": n(1)})

	require.ErrorIs(t, done(t.Context(), tab.once().UpdateItem, add), io.ErrUnexpectedEOF)
	assert.Empty(t, tab.amount("a"), "it has not arrived")
	require.NoError(t, done(t.Context(), tab.once().UpdateItem, add))
	assert.Equal(t, "1", tab.amount("a"))

	assert.Equal(t, 1, late.Arrive())
	assert.Equal(t, "2", tab.amount("a"))
	assert.Zero(t, late.Arrive(), "it arrives once")
	assert.Equal(t, 1, late.Fired())
	calls := recording.Calls("UpdateItem")
	require.Len(t, calls, 3)
	assert.False(t, calls[0].Late)
	require.ErrorIs(t, calls[0].Err, io.ErrUnexpectedEOF)
	assert.Zero(t, calls[0].WriteUnits)
	assert.False(t, calls[1].Late)
	assert.True(t, calls[2].Late)
	require.NoError(t, calls[2].Err)
	assert.Equal(t, []string{"Late"}, calls[2].Faults)
	assert.InDelta(t, 1, calls[2].WriteUnits, 0)
}

func TestLateRequestsArriveInTheOrderOfTheirCalls(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	late := tab.db.Inject(dynamotest.Late(), dynamotest.On("PutItem"), dynamotest.Key(keyOf("a", 1)))
	for i := range 3 {
		require.Error(t, done(t.Context(), tab.once().PutItem, putting("a", 1, object{"n": n(i)})))
	}
	late.Remove()
	tab.put("b", 1, nil)

	assert.Equal(t, 3, late.Arrive(), "though the fault is removed")
	assert.Equal(t, n(2), tab.get("a", 1)["n"])
}

func TestALateRequestIsJudgedByWhatItFinds(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	late := tab.db.Inject(dynamotest.Late(), dynamotest.On("PutItem"), dynamotest.Times(1))
	recording := tab.db.Record()
	first := putting("a", 1, object{"by": s("first")})
	first.ConditionExpression = aws.String("attribute_not_exists(p)")
	require.Error(t, done(t.Context(), tab.once().PutItem, first))
	tab.put("a", 1, object{"by": s("second")})

	late.Arrive()

	assert.Equal(t, s("second"), tab.get("a", 1)["by"])
	calls := recording.Calls("PutItem")
	assert.True(t, calls[2].Late)
	assert.ErrorContains(t, calls[2].Err, "conditional request failed")
}

func TestArriveHurriesALateRequest(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	late := tab.db.Inject(dynamotest.LateBy(time.Hour, time.Hour), dynamotest.On("PutItem"), dynamotest.Times(1))
	require.Error(t, done(t.Context(), tab.once().PutItem, putting("a", 1, nil)))

	assert.Equal(t, 1, late.Arrive())

	assert.NotEmpty(t, tab.get("a", 1))
}

func TestArriveHurriesARequestThatIsHeldUp(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	jam := tab.db.Inject(dynamotest.Congestion(time.Hour, time.Hour), dynamotest.On("PutItem"), dynamotest.Times(1))
	got := make(chan error, 1)
	go func() { got <- done(t.Context(), tab.once().PutItem, putting("a", 1, nil)) }()

	require.Eventually(t, func() bool { return jam.Arrive() == 1 }, time.Minute, time.Millisecond)

	require.NoError(t, <-got)
	assert.NotEmpty(t, tab.get("a", 1))
}

func TestACallerThatGaveUpSeesTheEndOfItsContext(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tab.db.Inject(dynamotest.Pause(func(context.Context) { cancel() }), dynamotest.On("PutItem"), dynamotest.Times(1))
	late := tab.db.Inject(dynamotest.Late(), dynamotest.On("PutItem"), dynamotest.Times(1))

	require.ErrorIs(t, done(ctx, tab.once().PutItem, putting("a", 1, nil)), context.Canceled)
	assert.Empty(t, tab.get("a", 1))

	late.Arrive()
	assert.NotEmpty(t, tab.get("a", 1))
}

func TestARequestThatIsRefusedIsNotLate(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Throttle(), dynamotest.On("PutItem"))
	late := tab.db.Inject(dynamotest.Late(), dynamotest.On("PutItem"))

	require.Error(t, done(t.Context(), tab.once().PutItem, putting("a", 1, nil)))

	assert.Zero(t, late.Fired())
	assert.Zero(t, late.Arrive())
}

func TestLateRequestsAreDrawnBySeed(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (late []string) {
		tab := newTable(t, dynamotest.WithSeed(seed))
		injection := tab.db.Inject(dynamotest.Late(), dynamotest.On("PutItem"), dynamotest.Chance(0.3))
		for i := range 40 {
			if done(t.Context(), tab.once().PutItem, putting("a", i, nil)) != nil {
				late = append(late, fmt.Sprint(i))
			}
		}
		assert.Equal(t, len(late), injection.Arrive())
		return late
	}
	first, again := run(7), run(7)
	assert.Equal(t, first, again)
	assert.NotEqual(t, run(7), run(8))
}

func TestAPauseComesBeforeTheEffectAndAPauseOfTheReplyAfterIt(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	var seen []bool
	look := func(ctx context.Context) {
		out, err := tab.client.GetItem(ctx, getting("a", 1))
		assert.NoError(t, err)
		seen = append(seen, out.Item != nil)
	}
	before := tab.db.Inject(dynamotest.Pause(look), dynamotest.On("PutItem", "GetItem"))
	after := tab.db.Inject(dynamotest.PauseReply(look), dynamotest.On("PutItem"), dynamotest.Times(1))

	tab.put("a", 1, nil)

	assert.Equal(t, []bool{false, true, true}, seen, "the read of a pause meets the other pause only")
	assert.Equal(t, 2, before.Fired())
	assert.Equal(t, 1, after.Fired())
}

func TestAContextThatEndsBeforeTheReplyLeavesTheEffect(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tab.db.Inject(dynamotest.PauseReply(func(context.Context) { cancel() }), dynamotest.On("PutItem"))

	require.ErrorIs(t, done(ctx, tab.client.PutItem, putting("a", 1, nil)), context.Canceled)

	assert.NotEmpty(t, tab.get("a", 1))
}

func TestItemsAreHiddenFromPages(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	for i := range 3 {
		tab.put("a", i, object{"g": s("x")})
	}
	tab.db.Inject(dynamotest.Hide(func(item object) bool { return assert.ObjectsAreEqual(n(1), item["s"]) }),
		dynamotest.Index("global"))

	hidden, err := tab.client.Query(t.Context(), querying("global", "x"))
	require.NoError(t, err)
	all, err := tab.client.Query(t.Context(), querying("", "a"))
	require.NoError(t, err)

	assert.EqualValues(t, 2, hidden.Count)
	assert.Len(t, hidden.Items, 2)
	assert.EqualValues(t, 3, all.Count)
}
