package journal_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// recorder is a database, or a proxy in front of one.
type recorder interface{ Record() *dynamotest.Recording }

// noted is an event of the aggregate "user-account".
type noted struct{ Text string }

func (noted) EventType() string { return "noted" }
func (noted) Apply(*int)        {}

// operations are reads and writes of several packages, by name.
func operations(t *testing.T, client journal.Client, j *journal.Journal) map[string]func(context.Context) error {
	t.Helper()
	definition := aggregate.Define[int]("user-account", noted{})
	accounts := testjournal.Repository(t, j, definition, repository.Config{})
	note := func(ctx context.Context, id string) error {
		_, err := accounts.Execute(ctx, id, func(int) (aggregate.Events[int], error) { return aggregate.Events[int]{noted{"a"}, noted{"b"}}, nil })
		return err
	}
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		for range 6 {
			require.NoError(t, note(t.Context(), id))
		}
	}
	_, err := checkpoint.New(j).ChangeMembership(t.Context(), checkpoint.Key{Group: "group", Topic: "user-account"},
		checkpoint.Membership{}, checkpoint.NewMembership(j.Shards(), j.Config().Now()))
	require.NoError(t, err)
	require.NoError(t, process.CreateTable(t.Context(), client, ""))
	require.NoError(t, readmodel.CreateTable(t.Context(), client, ""))
	models := readmodel.Config{Name: "model", Journal: j, Topics: []string{"user-account"}}
	_, err = readmodel.Open(t.Context(), client, models)
	require.NoError(t, err)
	require.NoError(t, encrypt.CreateTable(t.Context(), client, encrypt.KeysConfig{}))
	wrapper, err := encrypt.LocalWrapper(make([]byte, encrypt.KeyBytes))
	require.NoError(t, err)
	keys, err := encrypt.NewKeys(client, wrapper, encrypt.KeysConfig{})
	require.NoError(t, err)
	all, backlog := groups.New(j), process.NewBacklog(client, "")
	return map[string]func(context.Context) error{
		"load": func(ctx context.Context) error {
			_, err := accounts.Load(ctx, "1")
			return err
		},
		"write": func(ctx context.Context) error { return note(ctx, "1") },
		"transaction": func(ctx context.Context) error {
			_, err := j.Internal().AppendJoint(ctx, storage.Joint{Parts: []storage.Commit{
				{Aggregate: user("joint-1"), Events: events(1, 1)}, {Aggregate: user("joint-2"), Events: events(1, 1)},
			}})
			return err
		},
		"read of a transaction": func(ctx context.Context) error {
			_, _, err := j.Internal().JointCommand(ctx, "6f1c1a3e-2d58-4a5a-9c37-0f6d1c0b7e55")
			return err
		},
		"events": func(ctx context.Context) error { return last(j.Events(ctx, user("2"), 1, 12)) },
		"tail":   func(ctx context.Context) error { return last(j.Tail(ctx, "user-account", time.Time{})) },
		"heads":  func(ctx context.Context) error { return last(j.Heads(ctx, journal.HeadsQuery{})) },
		"heads of": func(ctx context.Context) error {
			return last(j.Heads(ctx, journal.HeadsQuery{AggregateType: "user-account"}))
		},
		"delete":      func(ctx context.Context) error { return j.Delete(ctx, user("5"), 12, journal.RemoveOptions{}) },
		"groups.List": func(ctx context.Context) error { _, err := all.List(ctx); return err },
		"groups.Estimate": func(ctx context.Context) error {
			_, err := all.Of("group", "user-account").Estimate(ctx)
			return err
		},
		"encrypt.EnsureKey": func(ctx context.Context) error { _, err := keys.EnsureKey(ctx, user("1")); return err },
		"encrypt.Destroy":   func(ctx context.Context) error { return keys.Destroy(ctx, user("2")) },
		"groups.Pause":      func(ctx context.Context) error { return all.Of("group", "user-account").Pause(ctx) },
		"process.Pending":   func(ctx context.Context) error { return last(backlog.Pending(ctx, process.BacklogQuery{})) },
		"process.Open of": func(ctx context.Context) error {
			return last(backlog.OpenProcesses(ctx, process.BacklogQuery{Type: "saga", ID: "1"}))
		},
		"readmodel.List":   func(ctx context.Context) error { _, err := readmodel.List(ctx, client, ""); return err },
		"readmodel opened": func(ctx context.Context) error { _, err := readmodel.OpenExisting(ctx, client, models); return err },
	}
}

// last reads a sequence to its end.
func last[T any](all func(func(T, error) bool)) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func requireCounts(t *testing.T, of recorder, client journal.Client, layout journal.Layout, repeated ...*repeats) {
	t.Helper()
	config := journal.Config{Layout: layout, Shards: 3}
	j := testjournal.New(t, client, config)
	for name, do := range operations(t, client, j) {
		calls := of.Record()
		ctx, units := journal.CountUnits(t.Context())

		require.NoError(t, do(ctx), name)

		calls.Stop()
		again := 0
		for _, r := range repeated {
			again += r.take(t, name)
		}
		read, write := calls.Units()
		if !testdb.IsLocal() { // it reports nothing for empty results
			assert.Positive(t, units.Read()+units.Write(), name)
		}
		assert.Positive(t, units.Requests(), name)
		assert.LessOrEqual(t, len(calls.Calls()), units.Requests()+again, "%s: requests: %+v", name, calls.Calls())
		if again > 0 {
			continue // a request that is repeated counts once
		}
		assert.InDelta(t, read, units.Read(), 0.001, "%s: read units", name)
		assert.InDelta(t, write, units.Write(), 0.001, "%s: write units", name)
		assert.Equal(t, len(calls.Calls()), units.Requests(), "%s: requests: %+v", name, calls.Calls())
	}
}

// repeats notes the attempts of the SDK that failed, such as those whose connection broke.
type repeats struct {
	mu   sync.Mutex
	errs []error
}

func (r *repeats) middleware(s *middleware.Stack) error {
	return s.Initialize.Add(middleware.InitializeMiddlewareFunc("repeats", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		out, metadata, err := next.HandleInitialize(ctx, in)
		if attempts, ok := retry.GetAttemptResults(metadata); ok {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, a := range attempts.Results {
				if a.Err != nil && a.Retried {
					r.errs = append(r.errs, a.Err)
				}
			}
		}
		return out, metadata, err
	}), middleware.Before)
}

// take returns the number of failed attempts since the last call, and logs their errors.
func (r *repeats) take(t *testing.T, name string) int {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.errs {
		t.Logf("%s: the SDK has repeated a request: %v", name, err)
	}
	n := len(r.errs)
	r.errs = nil
	return n
}

// passing is a client that is not the SDK's own, so its replies are read without rows.
type passing struct{ journal.Client }

func TestCountedUnitsAreThoseThatTheDatabaseConsumed(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		t.Run("in memory", func(t *testing.T) {
			t.Parallel()
			db := dynamotest.New(t)
			requireCounts(t, db, db.Client(), layout)
		})
		t.Run("over HTTP", func(t *testing.T) {
			t.Parallel()
			db := dynamotest.New(t)
			server := httptest.NewServer(db.Handler())
			t.Cleanup(server.Close)
			// Close of any server closes connections of the default transport.
			repeated := &repeats{}
			client := dynamodb.New(db.Client().Options(), func(o *dynamodb.Options) {
				o.BaseEndpoint, o.HTTPClient = &server.URL, &http.Client{Transport: &http.Transport{}}
				o.APIOptions = append(o.APIOptions, repeated.middleware)
			})
			requireCounts(t, db, client, layout, repeated)
		})
		t.Run("with another client", func(t *testing.T) {
			t.Parallel()
			db := dynamotest.New(t)
			requireCounts(t, db, passing{db.Client()}, layout)
		})
		t.Run("as replies report them", func(t *testing.T) {
			t.Parallel()
			proxy := dynamotest.NewProxy(t, testdb.Client(t)) // also DynamoDB Local
			requireCounts(t, proxy, proxy.Client(), layout)
		})
	})
}

func TestRequestsThatFailCountWithoutCapacity(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{})
	ctx, units := journal.CountUnits(t.Context())
	db.Inject(dynamotest.Throttle(), dynamotest.On("GetItem"))

	_, err := s.Head(ctx, user("1"))

	require.ErrorIs(t, err, journal.ErrThrottled)
	assert.Equal(t, 1, units.Requests(), "attempts of the SDK are one request")
	assert.Zero(t, units.Read())
}

func TestATransactionThatIsRepeatedCountsAsReads(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	in := &dynamodb.TransactWriteItemsInput{
		TransactItems:      []types.TransactWriteItem{{Put: &types.Put{TableName: aws.String(s.Config().Tables.Journal), Item: s.key("a", "b")}}},
		ClientRequestToken: aws.String("token"),
	}
	var counted []*journal.Units
	for range 2 {
		ctx, units := journal.CountUnits(t.Context())
		_, err := s.Bounded().TransactWriteItems(ctx, in)
		require.NoError(t, err)
		counted = append(counted, units)
	}
	assert.Positive(t, counted[0].Write())
	assert.Zero(t, counted[0].Read())
	assert.Zero(t, counted[1].Write())
	assert.InDelta(t, 2, counted[1].Read(), 0.001)
}

func TestAnOuterCountIncludesAnInnerOne(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 1)
		outside, outer := journal.CountUnits(t.Context())
		inside, inner := journal.CountUnits(outside)
		read := func(ctx context.Context) {
			_, err := s.Version(ctx, user("1"))
			require.NoError(t, err)
		}
		read(t.Context())
		read(outside)
		read(inside)
		read(inside)

		assert.Equal(t, 3, outer.Requests())
		assert.Equal(t, 2, inner.Requests())
		assert.InDelta(t, 3*inner.Read(), 2*outer.Read(), 0.001)
	})
}

// asked is a client that keeps the last input of an operation.
type asked struct {
	journal.Client
	query *dynamodb.QueryInput
	put   *dynamodb.PutItemInput
}

func (a *asked) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	a.query = in
	return a.Client.Query(ctx, in, options...)
}

func (a *asked) PutItem(ctx context.Context, in *dynamodb.PutItemInput, options ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	a.put = in
	return a.Client.PutItem(ctx, in, options...)
}

func TestRequestsAskForCapacityOnlyToCountIt(t *testing.T) {
	t.Parallel()
	s, _ := inMemory(t, journal.Config{Layout: journal.Packed})
	client := &asked{Client: s.client}
	j := s.through(t, client)
	counting, _ := journal.CountUnits(t.Context())
	for ctx, want := range map[context.Context]string{t.Context(): "", counting: "TOTAL"} {
		id := user("of " + want)
		_, err := j.Append(ctx, storage.Commit{Aggregate: id, Events: events(1, 1)})
		require.NoError(t, err)
		_, err = j.Version(ctx, id)
		require.NoError(t, err)
		assert.EqualValues(t, want, client.put.ReturnConsumedCapacity)
		assert.EqualValues(t, want, client.query.ReturnConsumedCapacity)
	}
}

func TestCountingLeavesTheInputAsItIs(t *testing.T) {
	t.Parallel()
	s, _ := inMemory(t, journal.Config{})
	ctx, units := journal.CountUnits(t.Context())
	in := &dynamodb.ScanInput{TableName: aws.String(s.Config().Tables.Journal)}

	_, err := s.Bounded().Scan(ctx, in)

	require.NoError(t, err)
	assert.Equal(t, &dynamodb.ScanInput{TableName: in.TableName}, in)
	assert.Equal(t, 1, units.Requests())
}

// idle is a client that does nothing.
type idle struct{ journal.Client }

func (idle) PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return nil, nil
}

func TestRequestsThatAreNotCountedAllocateNothing(t *testing.T) {
	s, _ := inMemory(t, journal.Config{})
	client, in := s.through(t, idle{s.client}).Bounded(), &dynamodb.PutItemInput{}
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = client.PutItem(t.Context(), in) }))
}
