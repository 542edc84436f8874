package publisher_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

// failureOf expects a PublishError about one aggregate.
func failureOf(t *testing.T, err error, id aggregate.ID) *publisher.AppendError {
	t.Helper()
	var failed *publisher.PublishError
	require.ErrorAs(t, err, &failed)
	require.Len(t, failed.Failed, 1)
	require.Equal(t, id, failed.Failed[0].Aggregate)
	return failed.Failed[0]
}

func TestALostReplyIsNotAnErrorAndNotADuplicate(t *testing.T) {
	t.Parallel()
	eachStore(t, journal.Config{}, func(t *testing.T, s *store) {
		p := s.publisher(publisher.Config{})
		s.wire.set(func(w *wire) {
			w.onReply = func(n int) error {
				if n%2 == 1 {
					return errLostReply
				}
				return nil
			}
		})

		require.NoError(t, p.Publish("order", messagesTo(order1, "m", 300)...))

		assert.Equal(t, numbered("m", 300), s.payloads(order1))
	})
}

func TestTheFirstTransactionThatFailsIsTheLastThatIsTried(t *testing.T) {
	t.Parallel()
	eachStore(t, journal.Config{}, func(t *testing.T, s *store) {
		p := s.publisher(publisher.Config{})
		refused := &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}
		s.wire.set(func(w *wire) {
			w.onWrite = func(_ context.Context, n int) error {
				if n == 2 {
					return refused
				}
				return nil
			}
		})

		err := p.Publish("order", messagesTo(order1, "m", 250)...)

		require.ErrorIs(t, err, journal.ErrAccess)
		failed := failureOf(t, err, order1)
		assert.Equal(t, indexes(0, 99), failed.Written)
		assert.Empty(t, failed.Unknown)
		assert.Equal(t, indexes(99, 250), failed.NotWritten)
		assert.EqualValues(t, 99, s.version(order1))
	})
}

func TestAFailureSaysWhichMessagesOfWhichAggregateAreNotWritten(t *testing.T) {
	t.Parallel()
	eachStore(t, journal.Config{}, func(t *testing.T, s *store) {
		p := s.publisher(publisher.Config{})
		require.NoError(t, p.Publish("order", messageTo(aggregate.ID{Value: "taken"}, "x")))
		taken, fresh := aggregate.ID{Type: "order", Value: "taken"}, aggregate.ID{Type: "order", Value: "fresh"}
		msgs := []*message.Message{messageTo(fresh, "0"), messageTo(taken, "1"), messageTo(fresh, "2"), messageTo(taken, "3")}
		publisher.SetExpectedVersion(msgs[1], 0)

		err := p.Publish("order", msgs...)

		failed := failureOf(t, err, taken)
		assert.Equal(t, []int{1, 3}, failed.NotWritten)
		var whole *publisher.PublishError
		require.ErrorAs(t, err, &whole)
		assert.Equal(t, []int{1, 3}, whole.NotWritten())
		assert.Empty(t, whole.Unknown())
		assert.Contains(t, err.Error(), "order-taken")
		assert.Equal(t, []string{"0", "2"}, s.payloads(fresh), "other aggregates are written all the same")
	})
}

func TestACommitOfUnknownOutcomeIsLookedFor(t *testing.T) {
	t.Parallel()
	// There is one attempt. Its reply is lost, and the read with which the journal resolves it
	// fails.
	eachStoreInFakeTime(t, journal.Config{RetryBudget: time.Nanosecond}, func(t *testing.T, s *store) {
		p := s.publisher(publisher.Config{})
		lost := 0
		s.wire.set(func(w *wire) {
			w.onReply = func(int) error { return errLostReply }
			w.onRead = func() error {
				w.mu.Lock()
				defer w.mu.Unlock()
				if len(w.transactions) > 0 && lost < 3 {
					lost++
					return errors.New("no route")
				}
				return nil
			}
		})

		require.NoError(t, p.Publish("order", messageTo(order1, "x")))
		require.NoError(t, p.Publish("order", messageTo(order1, "y")))

		assert.Equal(t, 3, lost, "the test must have made the first looks fail")
		assert.Equal(t, []string{"x", "y"}, s.payloads(order1))
	})
}

func TestACommitOfUnknownOutcomeWhosePlaceIsTakenIsRepeated(t *testing.T) {
	t.Parallel()
	eachStoreInFakeTime(t, journal.Config{RetryBudget: time.Nanosecond}, func(t *testing.T, s *store) {
		p := s.publisher(publisher.Config{})
		rival := s.another()
		s.wire.set(func(w *wire) {
			w.onWrite = func(ctx context.Context, n int) error {
				if n > 1 {
					return nil
				}
				_, err := rival.Internal().Append(ctx, storage.Commit{Aggregate: order1, Events: []storage.Event{{Payload: []byte("rival")}}})
				return errors.Join(err, errLostReply) // it never reaches the database
			}
		})

		require.NoError(t, p.Publish("order", messageTo(order1, "x")))

		assert.Equal(t, []string{"rival", "x"}, s.payloads(order1))
	})
}

func TestACommitOfUnknownOutcomeWhosePlaceWasRemovedIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(context.Context, *journal.Journal) error{
		"truncated": func(ctx context.Context, j *journal.Journal) error {
			return j.Truncate(ctx, order1, 2, journal.RemoveOptions{})
		},
		"deleted": func(ctx context.Context, j *journal.Journal) error {
			return j.Delete(ctx, order1, 1, journal.RemoveOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachStoreInFakeTime(t, journal.Config{RetryBudget: time.Nanosecond}, func(t *testing.T, s *store) {
				p := s.publisher(publisher.Config{CommitTimeout: 3 * time.Second})
				rival := s.another()
				s.wire.set(func(w *wire) {
					w.onWrite = func(ctx context.Context, n int) error {
						if n > 1 {
							return nil
						}
						_, err := rival.Internal().Append(ctx, storage.Commit{
							Aggregate: order1, Events: []storage.Event{{Payload: []byte("rival")}},
							Snapshot: &journal.Snapshot{Number: 1, Payload: []byte("state")},
						})
						return errors.Join(err, remove(ctx, rival), errLostReply)
					}
				})

				err := p.Publish("order", messageTo(order1, "x"))

				require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
				assert.Equal(t, []int{0}, failureOf(t, err, order1).Unknown)
				assert.Len(t, s.wire.sent(), 2, "repeating tells nothing")
			})
		})
	}
}

func TestACommitThatIsNotFoundIsReportedAsUnknown(t *testing.T) {
	t.Parallel()
	eachStoreInFakeTime(t, journal.Config{RetryBudget: time.Nanosecond}, func(t *testing.T, s *store) {
		p := s.publisher(publisher.Config{CommitTimeout: 300 * time.Millisecond})
		p.ResolveFor(100 * time.Millisecond)
		s.wire.set(func(w *wire) {
			w.onWrite = func(_ context.Context, n int) error {
				if n >= 2 {
					return errLostReply // before it reached the database
				}
				return nil
			}
		})

		began := time.Now()
		err := p.Publish("order", messagesTo(order1, "m", 250)...)

		require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
		assert.LessOrEqual(t, time.Since(began), 400*time.Millisecond, "both limits")
		failed := failureOf(t, err, order1)
		assert.Equal(t, indexes(0, 99), failed.Written)
		assert.Equal(t, indexes(99, 198), failed.Unknown)
		assert.Equal(t, indexes(198, 250), failed.NotWritten)
		assert.Len(t, failed.Attempts, len(s.wire.sent())-1, "the caller must be able to ask about each attempt")
		assert.Greater(t, len(failed.Attempts), 1)
		for _, attempt := range failed.Attempts {
			written, err := s.another().Resolve(t.Context(), attempt)
			require.NoError(t, err)
			assert.False(t, written)
		}
		for _, n := range s.wire.sent() {
			assert.Equal(t, 99, n, "nothing comes after a commit of unknown outcome")
		}

		s.wire.set(func(w *wire) { w.onWrite = nil })
		require.NoError(t, p.Publish("order", messageTo(order1, "later")), "the stream continues at its version")
		assert.EqualValues(t, 100, s.version(order1))
	})
}

func TestEndlessConflictsEndWithTheCommitTimeout(t *testing.T) {
	t.Parallel()
	eachStoreInFakeTime(t, journal.Config{}, func(t *testing.T, s *store) {
		p := s.publisher(publisher.Config{CommitTimeout: 3 * time.Second})
		rival := s.another()
		s.wire.set(func(w *wire) {
			w.onWrite = func(ctx context.Context, n int) error { // another writer is always faster
				_, err := rival.Internal().Append(context.Background(), storage.Commit{Aggregate: order1, Expected: uint64(n - 1), Events: []storage.Event{{}}})
				if n == 5 {
					<-ctx.Done()
					return ctx.Err()
				}
				return err
			}
		})

		began := time.Now()
		err := p.Publish("order", messageTo(order1, "x"))

		require.ErrorIs(t, err, journal.ErrConflict)
		assert.ErrorContains(t, err, "CommitTimeout")
		assert.Equal(t, 3*time.Second, time.Since(began))
		assert.Equal(t, []int{0}, failureOf(t, err, order1).NotWritten)
		assert.Greater(t, len(s.wire.sent()), 1, "it must have tried again")
	})
}

func TestAnAggregateThatWasDeletedBeginsAgain(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	require.NoError(t, p.Publish("order", messagesTo(order1, "old", 3)...))
	for _, table := range []string{"journal", "snapshot"} {
		items, err := s.client.Scan(context.Background(), &dynamodb.ScanInput{TableName: &table})
		require.NoError(t, err)
		for _, item := range items.Items {
			if _, ok := item["aid"]; ok {
				_, err := s.client.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{
					TableName: &table, Key: map[string]types.AttributeValue{"pkey": item["pkey"], "skey": item["skey"]},
				})
				require.NoError(t, err)
			}
		}
	}

	require.NoError(t, p.Publish("order", messagesTo(order1, "new", 2)...))

	assert.Equal(t, []string{"new0", "new1"}, s.payloads(order1))
}

func TestATextNamesThreeAggregatesAndCountsTheRest(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	var msgs []*message.Message
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		msgs = append(msgs, messageTo(aggregate.ID{Value: id}, "x"))
		publisher.SetExpectedVersion(msgs[len(msgs)-1], 7)
	}

	err := p.Publish("order", msgs...)

	require.ErrorIs(t, err, journal.ErrConflict)
	assert.Contains(t, err.Error(), `append to order-c `)
	assert.NotContains(t, err.Error(), `order-d`)
	assert.Contains(t, err.Error(), "and 2 more")
}

func TestThrottlingIsWaitedFor(t *testing.T) {
	t.Parallel()
	eachStoreInFakeTime(t, journal.Config{RetryBudget: time.Nanosecond}, func(t *testing.T, s *store) {
		p := s.publisher(publisher.Config{})
		throttled := &smithy.GenericAPIError{Code: "ThrottlingException"}
		reads := 0
		s.wire.set(func(w *wire) {
			w.onRead = func() error {
				if reads++; reads <= 2 {
					return throttled
				}
				return nil
			}
			w.onWrite = func(_ context.Context, n int) error {
				if n <= 2 {
					return throttled
				}
				return nil
			}
		})

		require.NoError(t, p.Publish("order", messageTo(order1, "x")))

		assert.Equal(t, []string{"x"}, s.payloads(order1))
	})
}

func TestAMissingTableIsNamed(t *testing.T) {
	t.Parallel()
	eachStore(t, journal.Config{}, func(t *testing.T, s *store) {
		p := s.publisher(publisher.Config{})
		table := "snapshot"
		if s.isPacked() {
			table = "journal" // the packed layout writes only here
		}
		_, err := s.client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table})
		require.NoError(t, err)

		err = p.Publish("order", messageTo(order1, "x"))

		require.ErrorIs(t, err, journal.ErrTableMissing)
		assert.ErrorContains(t, err, strconv.Quote(table))
	})
}

func TestEveryBadInputIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	eachStore(t, journal.Config{}, func(t *testing.T, s *store) {
		p := s.publisher(publisher.Config{})
		failing := s.publisher(publisher.Config{Marshaler: refusing{}})
		idless := s.publisher(publisher.Config{AggregateID: func(string, *message.Message) (string, error) { return "", errRefused }})
		with := func(change func(msg *message.Message)) *message.Message {
			msg := messageTo(order1, "bad")
			change(msg)
			return msg
		}
		good := func() *message.Message { return messageTo(order1, "good") }
		expecting := func(version uint64) *message.Message {
			return with(func(msg *message.Message) { publisher.SetExpectedVersion(msg, version) })
		}

		for name, c := range map[string]struct {
			publisher *publisher.Publisher
			topic     string
			bad       *message.Message
			want      any
			remedy    string
		}{
			"topic too long for the id":    {p, strings.Repeat("t", 1_001), with(func(msg *message.Message) { msg.Metadata.Set("aggregate_id", "12") }), new(*aggregate.InvalidIDError), "shorten"},
			"nil message":                  {p, "order", nil, nil, "message.NewMessage"},
			"aggregate id that is no text": {p, "order", with(func(msg *message.Message) { msg.Metadata.Set("aggregate_id", "\xff") }), new(*aggregate.InvalidIDError), "encode it as text"},
			"aggregate id too long":        {p, "order", with(func(msg *message.Message) { msg.Metadata.Set("aggregate_id", strings.Repeat("x", 1_000)) }), new(*aggregate.InvalidIDError), "shorten"},
			"aggregate id not to be had":   {idless, "order", good(), errRefused, "find its aggregate id"},
			"over 400 KB":                  {p, "order", with(func(msg *message.Message) { msg.Payload = make([]byte, 400<<10) }), nil, "store a reference"},
			"UUID that is no text":         {p, "order", with(func(msg *message.Message) { msg.UUID = "\xff" }), journal.ErrInvalidCommit, "UTF-8"},
			"name that is no text":         {p, "order", with(func(msg *message.Message) { msg.Metadata.Set("name", "\xff") }), journal.ErrInvalidCommit, "UTF-8"},
			"not to be marshaled":          {failing, "order", good(), errRefused, "marshal"},
			"version that is no number":    {p, "order", with(func(msg *message.Message) { msg.Metadata.Set("expected_version", "new") }), nil, "publisher.SetExpectedVersion"},
			"version not for the first":    {p, "order", expecting(1), nil, "call SetExpectedVersion for the first one"},
		} {
			t.Run(name, func(t *testing.T) {
				err := c.publisher.Publish(c.topic, good(), c.bad)
				require.Error(t, err)
				var refused *publisher.MessageError
				require.ErrorAs(t, err, &refused)
				if sentinel, ok := c.want.(error); ok {
					assert.ErrorIs(t, err, sentinel)
				} else if c.want != nil {
					assert.ErrorAs(t, err, c.want)
				}
				assert.ErrorContains(t, err, c.remedy)
				assert.NotErrorAs(t, err, new(*publisher.PublishError), "it would say that something may be written")
				assert.LessOrEqual(t, refused.Index, 1)
				assert.Contains(t, err.Error(), "nothing written")
				assert.Less(t, len(err.Error()), 3_000, "the text must stay readable")
			})
		}
		for topic, remedy := range map[string]string{
			"": "set a name", "a\nb": "leave it out", "\xff": "use plain text", strings.Repeat("t", 1_002): "use at most 1001",
		} {
			err := p.Publish(topic, good())
			require.ErrorAs(t, err, new(*publisher.TopicError))
			assert.ErrorContains(t, err, remedy)
			assert.Less(t, len(err.Error()), 3_000, "the text must stay readable")
		}
		assert.Empty(t, s.wire.sent())
		assert.Zero(t, s.eventCount())
	})
}

var errRefused = errors.New("refused")

type refusing struct{}

func (refusing) Marshal(string, *message.Message) (publisher.Event, error) {
	return publisher.Event{}, errRefused
}

func TestABadConfigIsRefused(t *testing.T) {
	t.Parallel()
	j := &journal.Journal{}
	for name, c := range map[string]struct {
		config publisher.Config
		field  string
	}{
		"no journal":             {publisher.Config{}, "Journal"},
		"stream that is no text": {publisher.Config{Journal: j, StreamID: "\xff"}, "StreamID"},
		"stream too long":        {publisher.Config{Journal: j, StreamID: strings.Repeat("x", 600)}, "StreamID"},
		"concurrency":            {publisher.Config{Journal: j, Concurrency: -1}, "Concurrency"},
		"commit timeout":         {publisher.Config{Journal: j, CommitTimeout: -1}, "CommitTimeout"},
		"cached streams":         {publisher.Config{Journal: j, CachedStreams: -1}, "CachedStreams"},
		"close timeout":          {publisher.Config{Journal: j, CloseTimeout: -1}, "CloseTimeout"},
	} {
		p, err := publisher.NewPublisher(c.config, nil)
		assert.Nil(t, p, name)
		var configErr *publisher.ConfigError
		if assert.ErrorAs(t, err, &configErr, name) {
			assert.Equal(t, c.field, configErr.Field, name)
		}
		assert.ErrorContains(t, err, c.field, name)
	}
}

func TestNothingIsPublishedToADeletedAggregate(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"its version is known": true, "it is not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachStore(t, journal.Config{}, func(t *testing.T, s *store) {
				p := s.publisher(publisher.Config{})
				require.NoError(t, p.Publish("order", messageTo(order1, "first")))
				require.NoError(t, s.another().Delete(t.Context(), order1, 1, journal.RemoveOptions{}))
				if !known {
					p = s.publisher(publisher.Config{})
				}

				failed := failureOf(t, p.Publish("order", messageTo(order1, "second")), order1)

				require.ErrorAs(t, failed.Err, new(*journal.DeletedError))
				assert.Equal(t, []int{0}, failed.NotWritten)
			})
		})
	}
}
