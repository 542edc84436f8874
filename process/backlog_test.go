package process_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

func (w *world) backlog() *process.Backlog { return process.NewBacklog(w.client, "") }

func (w *world) pending(query process.BacklogQuery) (all []process.Pending) {
	w.t.Helper()
	for p, err := range w.backlog().Pending(w.t.Context(), query) {
		require.NoError(w.t, err)
		all = append(all, p)
	}
	return all
}

// one returns the single pending value.
func (w *world) one(query process.BacklogQuery) process.Pending {
	w.t.Helper()
	all := w.pending(query)
	require.Len(w.t, all, 1)
	return all[0]
}

func TestTimeoutsThatAreSetArePending(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))

	p := w.one(process.BacklogQuery{})
	assert.Equal(t, "saga-o1", p.Process.String())
	assert.Equal(t, "timeout/credit", p.Row)
	assert.Equal(t, "credit", p.Timeout)
	assert.Empty(t, p.Input)
	assert.Equal(t, w.now.Add(deadline), p.At)
	assert.Equal(t, p.At, p.Next)
	assert.Zero(t, p.Attempts)
	assert.Empty(t, w.pending(process.BacklogQuery{Before: p.At}), "it is not due before")
	assert.Len(t, w.pending(process.BacklogQuery{Before: p.At.Add(time.Millisecond)}), 1)

	require.NoError(t, m.Handle(event(t.Context(), "e2", "c", CreditReserved{Order: "o1"})))
	assert.Empty(t, w.pending(process.BacklogQuery{}), "it was cancelled, and commands were sent")
}

func TestCommandsThatAreNotSentArePendingWithWhyTheyFail(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	w.setOffline(true)
	require.ErrorIs(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})), errOffline)

	stored := w.now
	// Before excludes the timeout.
	query := process.BacklogQuery{Type: "saga", ID: "o1", Before: w.now.Add(time.Second)}
	p := w.one(query)
	assert.Equal(t, "commands/e1", p.Row)
	assert.Equal(t, "e1", p.Input)
	assert.Equal(t, stored, p.At)
	assert.Equal(t, stored.Add(30*time.Second), p.Next)
	assert.Empty(t, p.Failure, "of those who run alone")
	require.Len(t, p.Commands, 1)
	assert.Equal(t, "ReserveCredit", p.Commands[0].Topic)
	assert.JSONEq(t, `{"Order":"o1","Total":5}`, string(p.Commands[0].Message.Payload))

	for n := range 2 {
		w.pass(31 * time.Second)
		_, err := m.Fire(t.Context())
		require.ErrorIs(t, err, errOffline)
		p = w.one(query)
		assert.Equal(t, n+1, p.Attempts)
		assert.Equal(t, w.now.Add(30*time.Second), p.Next)
		assert.Contains(t, p.Failure, `to "ReserveCredit": the broker is offline`)
		assert.NotContains(t, p.Failure, "e1", "the row says this already")
	}
	assert.EqualValues(t, 2, m.Stats().Failed)
	assert.EqualValues(t, 2, m.Stats().Polls)
}

func TestStoredCommandsKeepMetadataThatIsNotText(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	w.setOffline(true)
	placed := event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})
	placed.Metadata["correlation_id"] = "\xff"
	require.ErrorIs(t, m.Handle(placed), errOffline)
	w.setOffline(false)
	w.pass(31 * time.Second)
	_, err := m.Fire(t.Context())
	require.NoError(t, err)
	require.Len(t, w.sent, 1)
	assert.Equal(t, "\xff", w.sent[0].metadata["correlation_id"])
}

// noisy returns the manager of another type, whose commands are large.
func (w *world) noisy() *process.Manager[Saga] {
	w.t.Helper()
	m, err := process.New(w.j, w.client, process.Define(aggregate.Define[Saga]("saga2", Begun{}),
		process.On(func(e CreditReserved, _ process.Input) string { return e.Order }, func(Saga, CreditReserved, process.Input) (step, error) {
			return begun.Send(make([]byte, 200<<10)), nil
		}).Starts()), w.config())
	require.NoError(w.t, err)
	return m
}

func TestWhatIsPendingIsGivenForATypeOrAProcess(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	for _, id := range []string{"o1", "o2", "o10"} {
		require.NoError(t, m.Handle(event(t.Context(), "e-"+id, id, OrderPlaced{Total: 5})))
	}
	w.setOffline(true)
	require.ErrorIs(t, w.noisy().Handle(event(t.Context(), "e", "c", CreditReserved{Order: "o1"})), errOffline)

	assert.Len(t, w.pending(process.BacklogQuery{}), 4)
	assert.Len(t, w.pending(process.BacklogQuery{Type: "saga"}), 3)
	assert.Len(t, w.pending(process.BacklogQuery{Type: "saga", Before: w.now.Add(deadline + 1e6)}), 3)
	assert.Equal(t, "saga2-o1", w.one(process.BacklogQuery{Before: w.now.Add(1e6)}).Process.String())
	assert.Equal(t, "saga-o1", w.one(process.BacklogQuery{Type: "saga", ID: "o1"}).Process.String())
	assert.Empty(t, w.pending(process.BacklogQuery{Type: "saga", ID: "o3"}))
}

func TestWhatIsPendingIsGivenToTheLastPage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.setOffline(true)
	m := w.noisy()
	for i := range 6 { // of about 270 KB each, as JSON
		require.ErrorIs(t, m.Handle(event(t.Context(), fmt.Sprint("e", i), "c", CreditReserved{Order: "o1"})), errOffline)
	}
	assert.Len(t, w.pending(process.BacklogQuery{}), 6)
	assert.Len(t, w.pending(process.BacklogQuery{Type: "saga2", ID: "o1"}), 6)
	for _, err := range w.backlog().Pending(t.Context(), process.BacklogQuery{}) {
		require.NoError(t, err)
		break // a consumer may stop early
	}
}

func TestWhatFailedIsTriedAgainAtOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	w.setOffline(true)
	require.ErrorIs(t, m.Handle(event(t.Context(), "e2", "o2", OrderPlaced{Total: 5})), errOffline)
	w.pass(deadline)
	_, err := m.Fire(t.Context())
	require.ErrorIs(t, err, errOffline)
	w.setOffline(false)
	w.topics()
	w.fire(m)
	assert.Empty(t, w.topics(), "all of it waits for RetryAfter")

	for _, p := range w.pending(process.BacklogQuery{}) {
		require.NoError(t, w.backlog().Retry(t.Context(), p))
	}
	w.fire(m)
	assert.ElementsMatch(t, []string{"RejectOrder", "RejectOrder", "ReserveCredit"}, w.topics())
	assert.Empty(t, w.pending(process.BacklogQuery{}))
}

func TestARetryDoesNotFireATimeoutBeforeItIsDue(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	p := w.one(process.BacklogQuery{})
	require.NoError(t, w.backlog().Retry(t.Context(), p))
	assert.Zero(t, w.fire(m))
	assert.Equal(t, p, w.one(process.BacklogQuery{}))
}

func TestWhatIsDroppedIsNotDone(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	w.setOffline(true)
	placed := event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})
	require.ErrorIs(t, m.Handle(placed), errOffline)
	w.setOffline(false)
	for _, p := range w.pending(process.BacklogQuery{}) {
		require.NoError(t, w.backlog().Drop(t.Context(), p))
		require.ErrorIs(t, w.backlog().Drop(t.Context(), p), process.ErrNotPending)
		require.ErrorIs(t, w.backlog().Retry(t.Context(), p), process.ErrNotPending)
	}
	assert.Empty(t, w.pending(process.BacklogQuery{}))

	require.NoError(t, m.Handle(placed), "the event that comes again is done with")
	w.pass(deadline)
	assert.Zero(t, w.fire(m))
	assert.Empty(t, w.topics())
	require.NoError(t, m.Handle(event(t.Context(), "e2", "c", CreditReserved{Order: "o1"})), "the process goes on")
	assert.Equal(t, []string{"ApproveOrder"}, w.topics())
}

func TestATimeoutThatWasSetAnewIsNotDropped(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	seen := w.one(process.BacklogQuery{})
	require.NoError(t, m.Handle(event(t.Context(), "e2", "o1", OrderTouched{})))

	require.ErrorIs(t, w.backlog().Drop(t.Context(), seen), process.ErrNotPending)
	require.ErrorIs(t, w.backlog().Retry(t.Context(), seen), process.ErrNotPending)
	assert.Len(t, w.pending(process.BacklogQuery{}), 1)
}

// dropping drops a timeout just after a manager has taken it.
type dropping struct {
	*dynamodb.Client
	once sync.Once
	drop func()
}

func (d *dropping) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := d.Client.UpdateItem(ctx, in, o...)
	d.once.Do(d.drop)
	return out, err
}

func TestATimeoutThatIsDroppedWhileItFiresDoesNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(&dropping{Client: w.client, drop: func() {
		require.NoError(t, w.backlog().Drop(t.Context(), w.one(process.BacklogQuery{})))
	}}, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	w.topics()
	w.pass(deadline)
	w.fire(m)
	assert.Empty(t, w.topics())
	_, version := w.saga(m, "o1")
	assert.EqualValues(t, 1, version)
	assert.Zero(t, m.Stats().Failed)
}

func TestRowsThatCannotBeReadAreShownAndDropped(t *testing.T) {
	t.Parallel()
	w := setup(t)
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	for _, row := range []string{"commands/e1", "nonsense"} {
		_, err := w.client.PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: aws.String(process.DefaultTable), Item: map[string]types.AttributeValue{"pkey": text("saga\to1"), "skey": text(row)},
		})
		require.NoError(t, err)
	}
	rows := w.pending(process.BacklogQuery{Type: "saga", ID: "o1"})
	require.Len(t, rows, 2)
	assert.Contains(t, rows[0].Failure, "no list of commands")
	assert.Contains(t, rows[1].Failure, "neither a timeout nor commands")
	for _, p := range rows {
		require.NoError(t, w.backlog().Retry(t.Context(), p), "which helps once the row is corrected")
		require.NoError(t, w.backlog().Drop(t.Context(), p))
	}
	assert.Empty(t, w.pending(process.BacklogQuery{}))
}

func TestALongReasonIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := process.Define(sagas,
		process.On(byID, func(Saga, OrderPlaced, process.Input) (step, error) {
			return begun.SetTimeout("credit", time.Second), nil
		}).Starts(),
		process.OnTimeout("credit", func(Saga, process.Input) (step, error) { return step{}, errors.New(strings.Repeat("€", 1000)) }))
	m, err := process.New(w.j, w.client, d, w.config())
	require.NoError(t, err)
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{})))
	w.pass(time.Second)
	_, err = m.Fire(t.Context())
	require.Error(t, err)
	assert.Equal(t, strings.Repeat("€", 500/3), w.one(process.BacklogQuery{}).Failure)
}

func TestWhatStopsWithItsManagerHasNotFailed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ctx, stop := context.WithCancel(t.Context())
	d := process.Define(sagas,
		process.On(byID, func(Saga, OrderPlaced, process.Input) (step, error) {
			return begun.SetTimeout("credit", time.Second), nil
		}).Starts(),
		process.OnTimeout("credit", func(Saga, process.Input) (step, error) { stop(); return step{}, errNotNow }))
	m, err := process.New(w.j, w.client, d, w.config())
	require.NoError(t, err)
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{})))
	w.pass(time.Second)
	_, err = m.Fire(ctx)
	require.Error(t, err)
	assert.Zero(t, m.Stats().Failed)
	assert.Empty(t, w.one(process.BacklogQuery{}).Failure)
}

func TestAnIDWithoutATypeIsRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	looks := 0
	for _, err := range w.backlog().Pending(t.Context(), process.BacklogQuery{ID: "o1"}) {
		looks++
		require.ErrorAs(t, err, new(*process.ConfigError))
	}
	assert.Equal(t, 1, looks)
}

func TestABacklogWithoutATableSaysSo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := process.NewBacklog(w.client, "missing")
	for _, query := range []process.BacklogQuery{{}, {Type: "saga", ID: "o1"}} {
		looks := 0
		for _, err := range b.Pending(t.Context(), query) {
			looks++
			require.ErrorIs(t, err, journal.ErrTableMissing)
		}
		assert.Equal(t, 1, looks)
	}
	require.ErrorIs(t, b.Drop(t.Context(), process.Pending{Row: "timeout/credit"}), journal.ErrTableMissing)
}

// An operator lists failures, and retries them when the cause is fixed.
func ExampleBacklog() {
	ctx := context.Background()
	db := dynamotest.Open()
	defer db.Close()
	check(journal.Create(ctx, db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
	check(process.CreateTable(ctx, db.Client(), process.DefaultTable))
	j, err := journal.Open(ctx, db.Client(), journal.Config{})
	check(err)
	broker := &world{offline: true}
	manager, err := process.New(j, db.Client(), definition, process.Config{
		Publisher: broker, GeneratePublishTopic: func(cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return "credit", nil },
	})
	check(err)
	err = manager.Handle(event(ctx, "e1", "o1", OrderPlaced{Total: 5}))
	fmt.Println("handled:", err == nil)

	backlog := process.NewBacklog(db.Client(), process.DefaultTable)
	for p, err := range backlog.Pending(ctx, process.BacklogQuery{Type: "saga"}) {
		check(err)
		fmt.Println(p.Process, p.Row, len(p.Commands))
		if p.Input != "" {
			check(backlog.Retry(ctx, p))
		}
	}
	broker.setOffline(false)
	_, err = manager.Fire(ctx) // manager.Run does this by itself
	check(err)
	fmt.Println("sent to", broker.topics())
	// Output:
	// handled: false
	// saga-o1 commands/e1 1
	// saga-o1 timeout/credit 0
	// sent to [credit]
}
