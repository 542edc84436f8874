package journal_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// eachLean runs a test on lean tables with default and with other names.
func eachLean(t *testing.T, test func(t *testing.T, s store)) {
	t.Helper()
	t.Parallel()
	for name, config := range map[string]journal.Config{"default names": {}, "other names": renamed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config.Layout = journal.Lean
			test(t, setup(t, config))
		})
	}
}

// keep commits one event and a snapshot of it.
func keep(t *testing.T, j eventlog.Log, value string, version uint64) eventlog.Receipt {
	t.Helper()
	receipt, err := j.Append(t.Context(), eventlog.Commit{
		Aggregate: user(value), Expected: version - 1, Events: events(int(version), 1), Snapshot: stateAt(version),
	})
	require.NoError(t, err)
	return receipt
}

func TestALeanJournalIsWrittenAndReadAsAClassicOne(t *testing.T) {
	eachLean(t, func(t *testing.T, s store) {
		_, err := s.Head(t.Context(), user("1"))
		require.ErrorIs(t, err, journal.ErrNotFound)
		s.write(t, user("1"), 1, 1)
		head, err := s.Head(t.Context(), user("1"))
		require.NoError(t, err)
		assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 1}, head, "no snapshot yet")
		keep(t, s.Log, "1", 2)
		s.write(t, user("1"), 3, 1)

		head, err = s.Head(t.Context(), user("1"))
		require.NoError(t, err)
		assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 3, Snapshot: stateAt(2)}, head)
		s.requireVersion(t, user("1"), 3)
		records, err := read(t, s.Log, user("1"), 1, 3)
		require.NoError(t, err)
		requireNumbers(t, records, 1, 3)

		_, err = s.Append(t.Context(), eventlog.Commit{Aggregate: user("1"), Expected: 2, Events: events(3, 1), Snapshot: stateAt(3)})
		var conflict *journal.ConflictError
		require.ErrorAs(t, err, &conflict)
		assert.EqualValues(t, 3, conflict.Actual)
		head, err = s.Head(t.Context(), user("1"))
		require.NoError(t, err)
		assert.Equal(t, stateAt(2), head.Snapshot, "a commit that is refused leaves no state")

		j := s.through(t, s.onWire("TransactWriteItems", func(call int, send func() (*http.Response, error)) (*http.Response, error) {
			if call == 1 {
				return lose(t, send)
			}
			return send()
		}))
		receipt := keep(t, j, "2", 1)
		s.requireWrittenOnce(t, "2", receipt, 1)
	})
}

func TestTheHeadOfALeanJournalStaysSmall(t *testing.T) {
	eachLean(t, func(t *testing.T, s store) {
		c, a := s.Config(), s.Config().Attributes
		for version := uint64(1); version <= 2; version++ {
			_, err := s.Append(t.Context(), eventlog.Commit{
				Aggregate: user("1"), Expected: version - 1, Events: events(int(version), 1),
				Snapshot: &journal.Snapshot{Number: version, Payload: make([]byte, 100_000)},
			})
			require.NoError(t, err)
			it := s.keyOf(user("1"), 0)
			it[a.AggregateID], it[a.SequenceNumber] = text("user-account-1"), number(0)
			it[a.Version], it[a.TTL] = number(int64(version)), number(0)
			sum := sha256.Sum256(make([]byte, 100_000))
			it["snapshot_seq_nr"], it["snapshot_schema"] = number(int64(version)), number(0)
			it["snapshot_digest"] = binary(string(sum[:16]))
			assert.Equal(t, it, s.get(t, c.Tables.Snapshot, s.keyOf(user("1"), 0)))
		}
		assert.Len(t, s.scan(t, c.Tables.Snapshot), 2, "head and state")
	})
}

func TestALeanSnapshotTableHasNoIndex(t *testing.T) {
	eachLean(t, func(t *testing.T, s store) {
		table := s.Config().Tables.Snapshot
		out, err := s.client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
		require.NoError(t, err)
		assert.Empty(t, out.Table.GlobalSecondaryIndexes)
		require.NoError(t, journal.Create(t.Context(), s.client, s.Config()), "it may be called again")
	})
}

// Head and state are two items of one request, which shows a commit in part: each may be of before
// or of after it.
func TestATornReadOfHeadAndStateShowsNoSnapshotAheadOfTheVersionAndLosesNone(t *testing.T) {
	eachLean(t, func(t *testing.T, s store) {
		for name, stale := range map[string]string{"the head is old": "user-account-%s-0", "the state is old": "user-account-%s-state"} {
			for _, from := range []uint64{0, 1} {
				t.Run(fmt.Sprint(name, " from version ", from), func(t *testing.T) {
					value := fmt.Sprint(name, from)
					if from > 0 {
						keep(t, s.Log, value, from)
					}
					table := s.Config().Tables.Snapshot
					old := s.get(t, table, s.key(eventlog.ShardKey("user-account", s.Shard(user(value))), fmt.Sprintf(stale, value)))
					keep(t, s.Log, value, from+1)
					client := &meddler{Client: s.client}
					client.batchGet = func(_ int, _ *dynamodb.BatchGetItemInput, send func() (*dynamodb.BatchGetItemOutput, error)) (*dynamodb.BatchGetItemOutput, error) {
						out, err := send()
						var items []item
						for _, it := range out.Responses[table] {
							if key := it[s.Config().Attributes.SortKey]; assert.ObjectsAreEqual(text(fmt.Sprintf(stale, value)), key) {
								it = old
							}
							if it != nil {
								items = append(items, it)
							}
						}
						out.Responses[table] = items
						return out, err
					}

					head, err := s.through(t, client).Head(t.Context(), user(value))

					require.NoError(t, err)
					assert.Equal(t, from+1, head.Version)
					assert.Equal(t, stateAt(from+1), head.Snapshot)
				})
			}
		}
	})
}

// A part of a transaction may show for as long as it takes, so a second look at the head need not
// help.
func TestAReaderAmidACommitSeesAStateThatIsNotAheadOfTheVersion(t *testing.T) {
	t.Parallel()
	again := 0
	for seed := range uint64(8) {
		s, db := tearing(t, seed)
		keep(t, s.Log, "1", 1)
		proxy := dynamotest.NewProxy(t, s.client)
		reader := s.through(t, proxy.Client(testdb.Once))
		reads := proxy.Record()
		type result struct {
			head journal.Head
			err  error
		}
		results := make(chan result, 1)
		db.Inject(dynamotest.Tear(func(context.Context) {
			meets := make(chan struct{}, 1)
			stop := proxy.Observe(func(c dynamotest.Call) {
				if c.Operation != "TransactGetItems" {
					return
				}
				select {
				case meets <- struct{}{}: // the commit goes on once it has been met
				default:
				}
			})
			defer stop()
			go func() {
				head, err := reader.Head(t.Context(), user("1"))
				results <- result{head, err}
				select {
				case meets <- struct{}{}:
				default:
				}
			}()
			<-meets
		}), dynamotest.On("TransactWriteItems"))
		for version := uint64(2); version < 8; version++ {
			reads.Reset()
			keep(t, s.Log, "1", version)
			r := <-results
			require.NoError(t, r.err)
			require.NotNil(t, r.head.Snapshot)
			assert.LessOrEqual(t, r.head.Snapshot.Number, r.head.Version)
			assert.GreaterOrEqual(t, r.head.Snapshot.Number, version-1)
			assert.Equal(t, stateAt(r.head.Snapshot.Number), r.head.Snapshot)
			if len(reads.Calls("TransactGetItems")) > 0 {
				again++
			}
		}
	}
	assert.Positive(t, again, "some reads were torn")
}

// tearing is a lean store whose transactions show in parts that the seed chooses.
func tearing(t *testing.T, seed uint64) (store, *dynamotest.DB) {
	t.Helper()
	db := dynamotest.New(t, dynamotest.Seed(seed))
	config := ownTables(journal.Config{Layout: journal.Lean, Shards: 7})
	require.NoError(t, journal.Create(t.Context(), db.Client(), config))
	j, err := journal.Open(t.Context(), db.Client(), config)
	require.NoError(t, err)
	return store{Log: eventlog.Of(j), client: db.Client()}, db
}

func TestAStateThatATruncationHasMadeUselessIsReadAgain(t *testing.T) {
	eachLean(t, func(t *testing.T, s store) {
		keep(t, s.Log, "1", 1)
		table := s.Config().Tables.Snapshot
		old := s.get(t, table, s.key(eventlog.ShardKey("user-account", s.Shard(user("1"))), "user-account-1-state"))
		client := &meddler{Client: s.client}
		client.batchGet = func(_ int, _ *dynamodb.BatchGetItemInput, send func() (*dynamodb.BatchGetItemOutput, error)) (*dynamodb.BatchGetItemOutput, error) {
			// The state is read, then others commit and truncate, then the head is read.
			keep(t, s.Log, "1", 2)
			keep(t, s.Log, "1", 3)
			require.NoError(t, s.Truncate(t.Context(), user("1"), 4, journal.Removal{}))
			out, err := send()
			out.Responses[table] = []item{s.get(t, table, s.keyOf(user("1"), 0)), old}
			return out, err
		}

		head, err := s.through(t, client).Head(t.Context(), user("1"))

		require.NoError(t, err)
		assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 3, Snapshot: stateAt(3), TruncatedBefore: 4}, head)
	})
}

func TestAStateThatTheHeadDoesNotKnowIsNone(t *testing.T) {
	eachLean(t, func(t *testing.T, s store) {
		keep(t, s.Log, "1", 1)
		s.write(t, user("1"), 2, 1)
		table := s.Config().Tables.Snapshot
		old := s.get(t, table, s.keyOf(user("1"), 0))
		keep(t, s.Log, "1", 3)
		s.put(t, table, old) // as from a backup

		head, err := s.Head(t.Context(), user("1"))

		require.NoError(t, err)
		assert.EqualValues(t, 2, head.Version)
		assert.Nil(t, head.Snapshot)
	})
}

func TestUnprocessedKeysOfALeanHeadAreAskedForAgain(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{Layout: journal.Lean})
	keep(t, s.Log, "1", 1)
	injection := db.Inject(dynamotest.Unprocessed(1), dynamotest.On("BatchGetItem"), dynamotest.Times(3))
	head, err := s.Head(t.Context(), user("1"))
	require.NoError(t, err)
	assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 1, Snapshot: stateAt(1)}, head)
	assert.Positive(t, injection.Fired())

	injection.Remove()
	db.Inject(dynamotest.Unprocessed(2), dynamotest.On("BatchGetItem"))
	_, err = s.through(t, s.client, impatient).Head(t.Context(), user("1"))
	require.ErrorIs(t, err, journal.ErrThrottled)
}

func TestOpenTakesTheLayoutThatWasStored(t *testing.T) {
	t.Parallel()
	for _, stored := range []journal.Layout{journal.Classic, journal.Lean} {
		s := setup(t, journal.Config{Layout: stored})
		config := s.Config()
		config.Layout = ""

		j, err := journal.Open(t.Context(), s.client, config)

		require.NoError(t, err)
		assert.Equal(t, stored, j.Config().Layout)
	}
}

func TestOpenRefusesALayoutThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	s.change(t, s.Config().Tables.Journal, s.key("millrace", "descriptor"), item{"millrace_layout": text("later")})
	config := s.Config()
	config.Layout = ""
	_, err := journal.Open(t.Context(), s.client, config)
	require.ErrorAs(t, err, new(*journal.DescriptorMismatchError))
	require.ErrorContains(t, err, "layout later")
}

func TestOpenRefusesTheOtherLayout(t *testing.T) {
	t.Parallel()
	for stored, given := range map[journal.Layout]journal.Layout{journal.Classic: journal.Lean, journal.Lean: journal.Classic} {
		s := setup(t, journal.Config{Layout: stored})
		config := s.Config()
		config.Layout = given
		_, err := journal.Open(t.Context(), s.client, config)
		var mismatch *journal.DescriptorMismatchError
		require.ErrorAs(t, err, &mismatch)
		assert.Equal(t, journal.DescriptorMismatchError{
			Table: config.Tables.Journal, Field: "layout", Stored: string(stored), Given: string(given),
		}, *mismatch)
	}
	s := setup(t, journal.Config{})
	for _, c := range []struct {
		layout journal.Layout
		do     func(context.Context, journal.Client, journal.Config) error
	}{{"fat", journal.Create}, {journal.Lean, journal.Adopt}} {
		config := s.Config()
		config.Layout = c.layout
		var invalid *journal.ConfigError
		require.ErrorAs(t, c.do(t.Context(), s.client, config), &invalid)
		assert.Equal(t, "Layout", invalid.Field)
	}
}

func TestTablesMadeBeforeThereWasALayoutAreClassic(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	s.change(t, s.Config().Tables.Journal, s.key("millrace", "descriptor"), item{"millrace_layout": nil})
	s.through(t, s.client)
	config := s.Config()
	config.Layout = journal.Lean
	_, err := journal.Open(t.Context(), s.client, config)
	require.ErrorAs(t, err, new(*journal.DescriptorMismatchError))
}

// A commit pays for the state wherever it is in the item that the commit writes.
func TestInTheLeanLayoutACommitWithoutSnapshotDoesNotPayForTheState(t *testing.T) {
	t.Parallel()
	for layout, want := range map[journal.Layout]struct{ with, without, version float64 }{
		// A state of 100 KB is 98 units with its keys, doubled by the transaction; the index takes
		// it once more.
		journal.Classic: {2*98 + 98, 2*98 + 98, 25},
		journal.Lean:    {2*98 + 2, 2, 1},
	} {
		s, db := inMemory(t, journal.Config{Layout: layout})
		large := &journal.Snapshot{Payload: make([]byte, 100_000)}
		s.write(t, user("1"), 1, 1)
		cost := func(expected uint64, snapshot *journal.Snapshot) float64 {
			t.Helper()
			calls := db.Record()
			defer calls.Stop()
			_, err := s.Append(t.Context(), eventlog.Commit{Aggregate: user("1"), Expected: expected, Events: events(int(expected)+1, 1), Snapshot: snapshot})
			require.NoError(t, err)
			units := 0.0
			for _, c := range calls.Calls()[0].Capacity {
				if c.Table == s.Config().Tables.Snapshot {
					units += c.WriteUnits
				}
			}
			return units
		}
		large.Number = 2
		assert.InDelta(t, want.with, cost(1, large), 0, "%s, with a snapshot", layout)
		assert.InDelta(t, want.without, cost(2, nil), 0, "%s, without one", layout)
		calls := db.Record()
		s.requireVersion(t, user("1"), 3)
		units, _ := calls.Units()
		assert.InDelta(t, want.version, units, 0, "%s, the version alone", layout)
		calls.Reset()
		head, err := s.Head(t.Context(), user("1"))
		require.NoError(t, err)
		assert.EqualValues(t, 2, head.Snapshot.Number)
		assert.Len(t, calls.Calls(), 1, "one round trip")
	}
}

func TestALeanHeadThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{Layout: journal.Lean})
	keep(t, s.Log, "1", 1)
	proxy := dynamotest.NewProxy(t, s.client)
	j := s.through(t, proxy.Client(testdb.Once))
	throttled := proxy.Inject(dynamotest.Throttle(), dynamotest.On("BatchGetItem"))
	_, err := j.Head(t.Context(), user("1"))
	require.ErrorIs(t, err, journal.ErrThrottled)

	// The read of what the first one showed torn fails.
	throttled.Remove()
	torn := &meddler{Client: proxy.Client(testdb.Once)}
	torn.batchGet = func(_ int, _ *dynamodb.BatchGetItemInput, send func() (*dynamodb.BatchGetItemOutput, error)) (*dynamodb.BatchGetItemOutput, error) {
		page, err := send()
		for table, items := range page.Responses {
			page.Responses[table] = slices.DeleteFunc(items, func(it item) bool { return it["version"] != nil })
		}
		return page, err
	}
	j = s.through(t, torn)
	proxy.Inject(dynamotest.Refuse(&types.ResourceNotFoundException{}), dynamotest.On("TransactGetItems"))
	_, err = j.Head(t.Context(), user("1"))
	require.ErrorIs(t, err, journal.ErrTableMissing)
	require.NotErrorIs(t, err, journal.ErrNotFound)
}

func TestACommandWithoutEventsStoresNoSnapshot(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Lean} {
		s := setup(t, journal.Config{Layout: layout})
		keep(t, s.Log, "1", 1)

		receipt, err := s.Append(t.Context(), eventlog.Commit{
			Aggregate: user("1"), Expected: 1, CommandID: "c", Snapshot: &journal.Snapshot{Number: 1, Payload: []byte("other")},
			Redundancy: &eventlog.Redundancy{Listed: []uint64{}, Keep: 1},
		})

		require.NoError(t, err)
		assert.True(t, receipt.SnapshotLeftOut)
		assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 1, Snapshot: stateAt(1)}, s.head(t, user("1")))
		assert.Empty(t, s.snapshots(t, user("1")))
	}
}

// A redundant row has attributes that the lean state lacks, so with a long id one fits and the
// other does not.
func TestARedundantRowThatIsTooLargeIsLeftOutAlone(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{Layout: journal.Lean})
	alone := 0
	for size := eventlog.MaxItemBytes - 3_300; size < eventlog.MaxItemBytes; size += 300 {
		id := user(fmt.Sprint(strings.Repeat("x", 900), size))
		receipt, err := s.Append(t.Context(), eventlog.Commit{
			Aggregate: id, Events: events(1, 1), Snapshot: &journal.Snapshot{Number: 1, Payload: make([]byte, size)},
			Redundancy: &eventlog.Redundancy{Listed: []uint64{}, Keep: 1},
		})
		require.NoError(t, err, size)
		if !receipt.SnapshotLeftOut && len(receipt.Redundant) == 0 {
			alone++
		}
	}
	assert.Positive(t, alone)
}
