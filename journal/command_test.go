package journal_test

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// inMemory returns a journal in a database of the process, for tests of its clock, its faults and
// its capacity. Both have the same clock, which stands still.
func inMemory(t *testing.T, config journal.Config) (store, *dynamotest.DB) {
	t.Helper()
	db := dynamotest.New(t)
	db.Clock().Freeze()
	config = ownTables(config)
	config.Now, config.Shards, config.Layout = db.Clock().Now, cmp.Or(config.Shards, 7), cmp.Or(config.Layout, journal.Classic)
	config.RetryBudget = cmp.Or(config.RetryBudget, time.Minute) // as in setup
	s := store{client: db.Client()}
	j := testjournal.New(t, s.client, config)
	s.Engine = j.Internal()
	return s, db
}

func (s store) execute(t *testing.T, id aggregate.ID, expected, n int, commandID string) (storage.Receipt, error) {
	t.Helper()
	return s.Append(t.Context(), storage.Commit{
		Aggregate: id, Expected: uint64(expected), Events: events(expected+1, n), CommandID: commandID,
	})
}

// requireCommand requires that the journal knows the command like this.
func (s store) requireCommand(t *testing.T, id aggregate.ID, want storage.Command) {
	t.Helper()
	got, ok, err := s.Command(t.Context(), id, want.ID)
	require.NoError(t, err)
	require.True(t, ok, "command %q of %s is known", want.ID, id)
	require.Equal(t, want, got)
}

func (s store) requireVersion(t *testing.T, id aggregate.ID, want int) {
	t.Helper()
	version, err := s.Version(t.Context(), id)
	require.NoError(t, err)
	require.EqualValues(t, want, version)
}

func TestASecondCommitOfACommandIsRefusedWithWhatTheFirstOneWrote(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user("1")
		s.write(t, id, 1, 2)
		first, err := s.execute(t, id, 2, 3, "pay")
		require.NoError(t, err)
		s.write(t, id, 6, 1)
		want := storage.Command{ID: "pay", CommitID: first.CommitID, First: 3, Version: 5}

		for name, expected := range map[string]int{"at the version now": 6, "at the version then": 2, "of a new aggregate": 0} {
			_, err = s.execute(t, id, expected, 1, "pay")

			var duplicate *journal.DuplicateCommandError
			require.ErrorAs(t, err, new(*journal.DuplicateCommandError), name)
			require.NotErrorIs(t, err, journal.ErrConflict, name)
			require.ErrorAs(t, err, &duplicate, name)
			assert.Equal(t, journal.DuplicateCommandError{
				ID: id, CommandID: want.ID, CommitID: want.CommitID, First: want.First, Version: want.Version,
			}, *duplicate, name)
		}
		s.requireVersion(t, id, 6)
		assert.Empty(t, s.get(t, s.Config().Tables.Journal, s.keyOf(id, 7)))
		s.requireCommand(t, id, want)
		_, err = s.execute(t, id, 6, 1, "pay again")
		require.NoError(t, err)
	})
}

// Ids of aggregates and commands whose texts are ambiguous together still have different guards.
func TestACommandIsThatOfItsAggregateAlone(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		commands := map[string]struct {
			id        aggregate.ID
			commandID string
		}{
			"one":                            {user("1"), "c"},
			"another command":                {user("1"), "d"},
			"another aggregate":              {user("2"), "c"},
			"another type":                   {aggregate.ID{Type: "order", Value: "1"}, "c"},
			"an id that goes on":             {user("1-c"), "c"},
			"a command id that does":         {user("1"), "c-c"},
			"a type with a hyphen":           {aggregate.ID{Type: "a-b", Value: "c"}, "c"},
			"a value with a hyphen":          {aggregate.ID{Type: "a", Value: "b-c"}, "c"},
			"a command id like an event key": {user("1"), "1"},
		}
		want := map[string]storage.Command{}
		for name, c := range commands {
			version := 0
			for other, done := range commands {
				if _, ok := want[other]; ok && done.id == c.id {
					version++
				}
			}
			receipt, err := s.execute(t, c.id, version, 1, c.commandID)
			require.NoError(t, err, name)
			want[name] = storage.Command{ID: c.commandID, CommitID: receipt.CommitID, First: uint64(version) + 1, Version: uint64(version) + 1}
		}
		for name, c := range commands {
			s.requireCommand(t, c.id, want[name])
		}
	})
}

func TestACommandThatNobodyExecutedIsNotKnown(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		_, err := s.execute(t, user("1"), 0, 1, "pay")
		require.NoError(t, err)
		for _, id := range []aggregate.ID{user("1"), user("2")} {
			c, ok, err := s.Command(t.Context(), id, "refund")
			require.NoError(t, err)
			assert.False(t, ok)
			assert.Zero(t, c)
		}
	})
}

func TestACommandWithoutEventsMovesNoVersion(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for _, version := range []int{0, 2} {
			id := user(strings.Repeat("x", version+1))
			s.write(t, id, 1, version)
			stop := s.Watch(id.Type, func(aggregate.ID, uint64) { t.Error("nobody has to be woken") })

			receipt, err := s.execute(t, id, version, 0, "look")

			stop()
			require.NoError(t, err)
			assert.EqualValues(t, version, receipt.Version)
			s.requireCommand(t, id, storage.Command{
				ID: "look", CommitID: receipt.CommitID, First: uint64(version) + 1, Version: uint64(version),
			})
			if version == 0 {
				_, err := s.Head(t.Context(), id)
				require.ErrorIs(t, err, journal.ErrNotFound)
			} else {
				s.requireVersion(t, id, version)
			}
			_, err = s.execute(t, id, version, 0, "look")
			require.ErrorAs(t, err, new(*journal.DuplicateCommandError))
			_, err = s.execute(t, id, version, 1, "go on")
			require.NoError(t, err)
		}
	})
}

func TestACommandWithoutEventsThatExpectsAnotherVersionIsAConflict(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user("1")
		s.write(t, id, 1, 2)
		for _, expected := range []int{0, 1, 3} {
			_, err := s.execute(t, id, expected, 0, "look")

			var conflict *journal.ConflictError
			require.ErrorAs(t, err, &conflict)
			assert.Equal(t, journal.ConflictError{ID: id, Expected: uint64(expected), Actual: 2}, *conflict)
			_, ok, err := s.Command(t.Context(), id, "look")
			require.NoError(t, err)
			assert.False(t, ok)
		}
		_, err := s.execute(t, user("2"), 1, 0, "look")
		require.ErrorIs(t, err, journal.ErrConflict, "there is no such aggregate")
	})
}

// After DynamoDB has forgotten the token, a repetition meets the commit's own guard, whatever was
// committed since.
func TestALostReplyOfACommandIsSuccessAndNoDuplicate(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for name, c := range map[string]struct {
			events int
			none   []int // reasons that DynamoDB leaves out
			lost   bool  // whether the client sees the loss; otherwise the SDK sent it twice
		}{
			"with events":    {events: 2, lost: true},
			"without events": {lost: true},
			"with events, only the head's condition evaluated":  {events: 2, none: []int{1, 2, 3}, lost: true},
			"with events, only the guard's condition evaluated": {events: 2, none: []int{0, 1, 2}},
			"without events, only the guard's":                  {none: []int{0}},
			"sent twice with events":                            {events: 2},
			"sent twice without events":                         {},
		} {
			t.Run(name, func(t *testing.T) {
				id := user(name)
				s.write(t, id, 1, 1)
				client := &meddler{Client: s.client}
				client.transact = func(call int, in *dynamodb.TransactWriteItemsInput, send func() (*dynamodb.TransactWriteItemsOutput, error)) (*dynamodb.TransactWriteItemsOutput, error) {
					if call == 1 {
						_, err := send()
						assert.NoError(t, err)
						s.write(t, id, 2+c.events, 1)
						if c.lost {
							return nil, errConnectionLost
						}
					}
					out, err := s.withoutToken(t, in)
					var canceled *types.TransactionCanceledException
					if errors.As(err, &canceled) {
						for _, i := range c.none {
							if i >= len(canceled.CancellationReasons) || len(canceled.CancellationReasons) == 1 {
								continue // a put has one condition
							}
							canceled.CancellationReasons[i] = types.CancellationReason{Code: aws.String("None")}
						}
					}
					return out, err
				}
				s := store{Engine: s.through(t, client), client: s.client}

				receipt, err := s.execute(t, id, 1, c.events, "pay")

				require.NoError(t, err)
				assert.EqualValues(t, 1+c.events, receipt.Version)
				s.requireVersion(t, id, 2+c.events)
				s.requireCommand(t, id, storage.Command{ID: "pay", CommitID: receipt.CommitID, First: 2, Version: receipt.Version})
			})
		}
	})
}

func TestTheOutcomeOfACommandCanBeResolvedByTheErrorsFieldsAlone(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for name, c := range map[string]struct {
			events  int
			arrives bool
		}{
			"with events, written":        {2, true},
			"with events, not written":    {2, false},
			"without events, written":     {0, true},
			"without events, not written": {0, false},
		} {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := cancellable(t)
				j := s.through(t, s.onCommits(func(_ int, send func() (*http.Response, error)) (*http.Response, error) {
					if c.arrives {
						_, _ = lose(t, send)
					}
					cancel()
					return nil, ctx.Err()
				}))
				id := user(name)

				_, err := j.Append(ctx, storage.Commit{Aggregate: id, Events: events(1, c.events), CommandID: "pay"})

				var unknown *journal.OutcomeUnknownError
				require.ErrorAs(t, err, &unknown)
				fields := journal.OutcomeUnknownError{ID: unknown.ID, First: unknown.First, CommitID: unknown.CommitID, CommandID: unknown.CommandID}
				assert.Equal(t, "pay", fields.CommandID)
				resolve := func(want bool, when string) {
					t.Helper()
					written, err := s.Resolve(t.Context(), &fields)
					require.NoError(t, err)
					require.Equal(t, want, written, when)
				}
				resolve(c.arrives, "at once")
				if !c.arrives {
					// Another attempt, which is another commit, executes the command.
					_, err := s.execute(t, id, 0, 1, "pay")
					require.NoError(t, err)
					resolve(true, "after another commit of the command")
					return
				}
				from := c.events + 1
				s.write(t, id, from, 1)
				resolve(true, "after a later commit")
				require.NoError(t, s.Delete(t.Context(), id, uint64(from), journal.RemoveOptions{}))
				resolve(true, "after the events are gone")
			})
		}
	})
}

func TestACommitIsFoundByItsEventsWhenItsCommandIsForgotten(t *testing.T) {
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		s, db := inMemory(t, journal.Config{Layout: layout, CommandRetention: time.Minute})
		receipt, err := s.execute(t, user("1"), 0, 1, "pay")
		require.NoError(t, err)
		db.Clock().Advance(time.Hour)

		written, err := s.Resolve(t.Context(), &journal.OutcomeUnknownError{ID: user("1"), First: 1, CommitID: receipt.CommitID, CommandID: "pay"})

		require.NoError(t, err)
		assert.True(t, written)
	})
}

func TestACommandIsRememberedForItsRetentionAndMayRunAgainAfterwards(t *testing.T) {
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		s, db := inMemory(t, journal.Config{Layout: layout, CommandRetention: 90 * time.Second})
		db.Clock().Advance(700 * time.Millisecond) // times are stored in whole seconds
		_, err := s.execute(t, user("1"), 0, 1, "pay")
		require.NoError(t, err)

		db.Clock().Advance(90*time.Second - time.Millisecond)
		_, err = s.execute(t, user("1"), 1, 1, "pay")
		require.ErrorAs(t, err, new(*journal.DuplicateCommandError))

		// The packed layout keeps a command as long as the item of its commit, unless a
		// snapshot was stored since.
		if s.isPacked() {
			return
		}
		db.Clock().Advance(3 * time.Second)
		_, ok, err := s.Command(t.Context(), user("1"), "pay")
		require.NoError(t, err)
		assert.False(t, ok)
		_, err = s.execute(t, user("1"), 1, 1, "pay")
		require.NoError(t, err)
		s.requireVersion(t, user("1"), 2)
	})
}

func TestACommandIsRememberedForEverByDefault(t *testing.T) {
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		s, db := inMemory(t, journal.Config{Layout: layout})
		_, err := s.execute(t, user("1"), 0, 1, "pay")
		require.NoError(t, err)

		db.Clock().Advance(100 * 365 * 24 * time.Hour)

		_, err = s.execute(t, user("1"), 1, 1, "pay")
		require.ErrorAs(t, err, new(*journal.DuplicateCommandError))
		s.requireVersion(t, user("1"), 1)
	})
}

func TestGuardsOfCommandsDisturbNoReader(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		c, id := s.Config(), user("1")
		for n := range 20 {
			_, err := s.execute(t, id, n, 1, strings.Repeat("c", n+1))
			require.NoError(t, err)
		}
		_, err := s.execute(t, id, 20, 0, "no events")
		require.NoError(t, err)
		_, err = s.execute(t, user("2"), 0, 0, "no aggregate")
		require.NoError(t, err)

		for _, index := range []string{c.Classic.Indexes.JournalAggregate, c.Classic.Indexes.JournalTail} {
			out, err := s.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &c.Tables.Journal, IndexName: &index})
			require.NoError(t, err)
			assert.Len(t, out.Items, 20, index)
		}
		records, err := read(t, s.Engine, id, 1, 20)
		require.NoError(t, err)
		requireNumbers(t, records, 1, 20)
		page, err := s.TailShard(t.Context(), storage.TailQuery{AggregateType: id.Type, Shard: s.Shard(id)})
		require.NoError(t, err)
		assert.Len(t, page.Records, 20)
		assert.Empty(t, page.Corrupt)
		assert.Len(t, s.heads(t, journal.HeadsQuery{}), 1)

		s.remove(t, c.Tables.Journal, s.key("millrace", "descriptor"))
		require.NoError(t, journal.Adopt(t.Context(), s.client, c))
		require.NoError(t, s.Delete(t.Context(), id, 20, journal.RemoveOptions{}))
		assert.Len(t, s.scan(t, c.Tables.Journal), 20+2+1, "guards and descriptor stay")
		_, err = s.execute(t, id, 0, 1, "no events")
		require.ErrorAs(t, err, new(*journal.DuplicateCommandError))
	})
}

func TestTheLongestIDAndCommandIDFitTheKeys(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user(strings.Repeat("x", aggregate.MaxIDBytes-len("user-account-")))
		commandID := strings.Repeat("ü", 256)

		receipt, err := s.execute(t, id, 0, 1, commandID)

		require.NoError(t, err)
		s.requireCommand(t, id, storage.Command{ID: commandID, CommitID: receipt.CommitID, First: 1, Version: 1})
	})
}

func TestACommandIDThatCannotBeStoredIsRefused(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for commandID, want := range map[string]string{
			strings.Repeat("c", 513): "has 513 bytes, at most 512 are allowed: use a digest of it",
			"\xff":                   `"\xff" is not UTF-8: encode it as text`,
		} {
			client := &meddler{Client: s.client}
			s := store{Engine: s.through(t, client), client: s.client}
			client.calls = nil

			_, err := s.execute(t, user("1"), 0, 1, commandID)
			_, _, commandErr := s.Command(t.Context(), user("1"), commandID)

			for _, err := range []error{err, commandErr} {
				require.ErrorIs(t, err, journal.ErrInvalidCommit)
				assert.ErrorContains(t, err, want)
			}
			assert.Empty(t, client.calls, "nothing is sent")
		}
		_, _, err := s.Command(t.Context(), user("1"), "")
		require.ErrorIs(t, err, journal.ErrInvalidCommit)
		_, _, err = s.Command(t.Context(), user(""), "c")
		require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
	})
}

func TestAGuardThatCannotBeReadIsCorrupt(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		c, id := s.Config(), user("1")
		_, err := s.execute(t, id, 0, 0, "pay")
		require.NoError(t, err)
		for _, attribute := range []string{"command_id", "commit_id", "commit_first", "commit_version"} {
			guards := s.scan(t, c.Tables.Journal)
			for _, guard := range guards {
				if guard["command_id"] == nil && guard["commit_id"] == nil {
					continue // the descriptor
				}
				key := item{c.Classic.Attributes.PartitionKey: guard[c.Classic.Attributes.PartitionKey], c.Classic.Attributes.SortKey: guard[c.Classic.Attributes.SortKey]}
				s.change(t, c.Tables.Journal, key, item{attribute: nil})

				_, _, commandErr := s.Command(t.Context(), id, "pay")
				_, err := s.execute(t, id, 0, 1, "pay")

				for _, err := range []error{err, commandErr} {
					var corrupt *journal.CorruptItemError
					require.ErrorAs(t, err, &corrupt, attribute)
					assert.Equal(t, text(corrupt.SortKey), guard[c.Classic.Attributes.SortKey])
				}
				s.put(t, c.Tables.Journal, guard)
			}
		}
	})
}
