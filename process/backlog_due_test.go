package process_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

// due returns the first n values of Due before a time.
func (w *world) due(before time.Time, n int) (all []process.Pending) {
	w.t.Helper()
	for p, err := range w.backlog().Due(w.t.Context(), "saga", before) {
		require.NoError(w.t, err)
		if all = append(all, p); len(all) == n {
			break
		}
	}
	return all
}

const everything = 1 << 30

// putTimeouts stores n timeouts of processes of a type in some queues, in the order of their
// numbers, one second apart.
func putTimeouts(t *testing.T, client *dynamodb.Client, processType string, queues, n int, start time.Time) {
	t.Helper()
	number := func(v any) types.AttributeValue { return &types.AttributeValueMemberN{Value: fmt.Sprint(v)} }
	text := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	put := func(row map[string]types.AttributeValue) {
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(process.DefaultTable), Item: row})
		require.NoError(t, err)
	}
	put(map[string]types.AttributeValue{"pkey": text(processType), "skey": text("queues"), "count": number(queues)})
	for i := range n {
		at := start.Add(time.Duration(i) * time.Second).UnixMilli()
		put(map[string]types.AttributeValue{
			"pkey": text(fmt.Sprintf("%s\tp%05d", processType, i)), "skey": text("timeout/credit"), "queue": text(fmt.Sprintf("%s-%d", processType, i%queues)),
			"due": number(at), "at": number(at), "token": text("t"),
		})
	}
}

func TestWhatIsDueComesInTheOrderOfItsTimes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.withQueues(w.client, 4)
	for i := range 60 {
		w.place(m, fmt.Sprintf("o%02d-", i), 1)
		w.pass(time.Second)
	}
	w.setOffline(true)
	require.ErrorIs(t, m.Handle(event(t.Context(), "c", "c", OrderPlaced{Total: 5})), errOffline)
	start := w.now.Add(-time.Minute).Add(deadline)

	all := w.due(time.Time{}, everything)

	require.Len(t, all, 62)
	assert.True(t, slices.IsSortedFunc(all, func(a, b process.Pending) int { return a.Next.Compare(b.Next) }))
	assert.Equal(t, "commands/c", all[0].Row)
	assert.Len(t, all[0].Commands, 1)
	assert.Equal(t, w.one(process.BacklogQuery{Type: "saga", ID: "o30-0"}), all[31], "as Pending returns it")
	assert.Len(t, w.due(start, everything), 1, "before, not at")
	assert.Len(t, w.due(start.Add(10*time.Second), everything), 11)
	assert.Empty(t, w.due(w.now, everything))
	for p, err := range w.backlog().Due(t.Context(), "nobody", time.Time{}) {
		assert.Fail(t, "there is nothing", "%v %v", p, err)
	}
	failures := 0
	for _, err := range w.backlog().Due(t.Context(), "", time.Time{}) {
		require.ErrorAs(t, err, new(*process.ConfigError))
		failures++
	}
	assert.Equal(t, 1, failures)
}

func TestATimeoutWhoseAttemptFailedIsDueAfterRetryAfter(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	at := w.now.Add(deadline)
	w.pass(deadline)
	assert.Len(t, w.due(w.now.Add(time.Millisecond), everything), 1)
	_, err := w.failing().Fire(t.Context())
	require.ErrorIs(t, err, errNotNow)

	assert.Empty(t, w.due(w.now.Add(time.Second), everything))
	late := w.due(w.now.Add(time.Minute), everything)
	require.Len(t, late, 1)
	assert.Equal(t, at, late[0].At)
	assert.Equal(t, w.now.Add(30*time.Second), late[0].Next)
	assert.Equal(t, 1, late[0].Attempts)
}

func TestAPageOfWhatIsDueCostsWhatItShows(t *testing.T) {
	t.Parallel()
	const queues = 4
	rows := 10_000
	if testdb.Race { // which takes ten times as long, and does not depend on the number of rows
		rows = 1_000
	}
	db := dynamotest.New(t)
	require.NoError(t, process.CreateTable(t.Context(), db.Client(), ""))
	start := time.UnixMilli(1_700_000_000_000)
	putTimeouts(t, db.Client(), "saga", queues, rows, start)
	w := &world{t: t, client: db.Client()}
	cost := func(do func()) float64 {
		recording := db.Record()
		defer recording.Stop()
		do()
		read, _ := recording.Units()
		return read
	}

	read := cost(func() {
		all := w.due(time.Time{}, 50)
		require.Len(t, all, 50)
		for i, p := range all {
			require.Equal(t, fmt.Sprintf("p%05d", i), p.Process.Value)
		}
	})
	assert.InDelta(t, 0.5+75+queues*0.5, read, 0.1, "the number of queues, rows, a page of each queue")
	read = cost(func() { assert.Len(t, w.due(start.Add(10*time.Second), everything), 10) })
	assert.InDelta(t, 0.5+10+queues*0.5, read, 0.1)
	read = cost(func() { assert.Empty(t, w.due(start, everything)) })
	assert.InDelta(t, 0.5+queues*0.5, read, 0.1)
	read = cost(func() { assert.Len(t, w.due(time.Time{}, everything), rows) })
	assert.InDelta(t, rows, read, float64(rows)*0.03, "the rows, and half a unit for 4 KB of the index")
}

func TestARowThatIsTakenUpMeanwhileComesOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	w.place(m, "o", 40)
	w.pass(deadline)
	var got []string
	for p, err := range w.backlog().Due(t.Context(), "saga", w.now.Add(time.Hour)) {
		require.NoError(t, err)
		if got = append(got, p.Process.Value); len(got) == 1 {
			_, err := w.failing().Fire(t.Context()) // it makes all of them due later
			require.ErrorIs(t, err, errNotNow)
		}
		if len(got) == 26 {
			assert.Equal(t, w.now.Add(30*time.Second), p.Next, "as it is now")
		}
	}
	assert.Len(t, got, 40)
	slices.Sort(got)
	assert.Len(t, slices.Compact(got), 40)
}

func TestWhatIsTakenUpLaterMeanwhileIsLeftOut(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		w.place(w.withQueues(w.client, 4), "o", 40) // so that all of the index is read before
		w.pass(deadline)
		n := 0
		for _, err := range w.backlog().Due(t.Context(), "saga", w.now.Add(time.Second)) {
			require.NoError(t, err)
			if n++; n == 1 {
				_, err := w.failing().Fire(t.Context())
				require.ErrorIs(t, err, errNotNow)
			}
		}
		assert.Equal(t, 25, n, "those that were read before")
	})
}

func TestWhatIsDoneMeanwhileIsLeftOut(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	w.place(m, "o", 40)
	w.pass(deadline)
	n := 0
	for _, err := range w.backlog().Due(t.Context(), "saga", time.Time{}) {
		require.NoError(t, err)
		if n++; n == 1 {
			assert.Equal(t, 40, w.fire(m))
		}
	}
	assert.Equal(t, 25, n, "those that were read before")
}

func TestDueEndsWithTheFirstError(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	w := &world{t: t, client: db.Client()}
	for _, err := range w.backlog().Due(t.Context(), "saga", time.Time{}) {
		require.ErrorIs(t, err, journal.ErrTableMissing)
	}
	require.NoError(t, process.CreateTable(t.Context(), db.Client(), ""))
	putTimeouts(t, db.Client(), "saga", 2, 10, time.UnixMilli(1_700_000_000_000))
	for _, operation := range []string{"GetItem", "Query", "BatchGetItem"} {
		fault := db.Inject(dynamotest.Refuse(&types.ResourceNotFoundException{}), dynamotest.On(operation))
		failures := 0
		for _, err := range w.backlog().Due(t.Context(), "saga", time.Time{}) {
			require.ErrorIs(t, err, journal.ErrTableMissing, operation)
			failures++
		}
		assert.Equal(t, 1, failures, operation)
		fault.Remove()
	}
}

// failing returns a manager whose reaction to the timeout fails.
func (w *world) failing() *process.Manager[Saga] {
	w.t.Helper()
	m, err := process.New(w.j, w.client, process.Define(sagas,
		process.On(byID, func(Saga, OrderPlaced, process.Input) (step, error) { return begun, nil }).Starts(),
		process.OnTimeout("credit", func(Saga, process.Input) (step, error) { return step{}, errNotNow }),
	), w.config())
	require.NoError(w.t, err)
	return m
}
