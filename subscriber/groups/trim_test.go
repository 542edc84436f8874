package groups_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// queue is a topic whose events are a day old for its trims.
type queue struct {
	store
	later *groups.Groups
}

const day = 24 * time.Hour

var keepHour = groups.TrimOptions{Keep: time.Hour}

func openQueue(t *testing.T, client *dynamodb.Client) queue {
	t.Helper()
	later := open(t, client, journal.Config{Now: func() time.Time { return time.Now().Add(day) }})
	return queue{open(t, client, journal.Config{}), later.Groups}
}

// publish publishes messages without an aggregate id, each in a commit of its own.
func (q queue) publish(t *testing.T, stream string, n int) {
	t.Helper()
	p, err := publisher.NewPublisher(publisher.Config{Journal: q.Journal, StreamID: stream}, nil)
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, p.Publish(topic, message.NewMessage("", fmt.Append(nil, i))))
	}
	require.NoError(t, p.Close())
}

// left returns the numbers of the events of a stream that can be read.
func (q queue) left(t *testing.T, stream string) (numbers []uint64) {
	t.Helper()
	for r, err := range q.AllEvents(t.Context(), account(stream)) {
		require.NoError(t, err)
		numbers = append(numbers, r.Number)
	}
	return numbers
}

func (q queue) trim(t *testing.T) groups.Trimmed {
	t.Helper()
	trimmed, err := q.later.Trim(t.Context(), topic, keepHour)
	require.NoError(t, err)
	return trimmed
}

func eachQueue(t *testing.T, test func(t *testing.T, q queue)) {
	t.Helper()
	eachLayout(t, 2, func(t *testing.T, client *dynamodb.Client) { test(t, openQueue(t, client)) })
}

func eachQueueInFakeTime(t *testing.T, test func(t *testing.T, q queue)) {
	t.Helper()
	eachLayoutInFakeTime(t, 2, func(t *testing.T, client *dynamodb.Client) { test(t, openQueue(t, client)) })
}

func TestATrimRemovesWhatAllGroupsHaveHandled(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		q.begin(t, time.Time{})
		_, err := checkpoint.New(q.Journal).ChangeMembership(t.Context(), checkpoint.Key{Group: "other", Topic: topic},
			checkpoint.Membership{}, checkpoint.NewMembership(q.Shards(), time.Time{}))
		require.NoError(t, err)
		q.publish(t, "worker", 5)
		q.acked(t, "worker", 5)
		assert.Equal(t, map[string]int{"other": 1}, q.trim(t).HeldBy)
		assert.Len(t, q.left(t, "worker"), 5)
		require.NoError(t, checkpoint.New(q.Journal).PutPosition(t.Context(), checkpoint.Group{Name: "other"}, account("worker"), 1, 3))

		dry, err := q.later.Trim(t.Context(), topic, groups.TrimOptions{Keep: time.Hour, DryRun: true})
		require.NoError(t, err)
		assert.Len(t, q.left(t, "worker"), 5)
		trimmed := q.trim(t)

		assert.Equal(t, groups.Trimmed{
			Topic: topic, Aggregates: 1, Streams: 1, Events: 3, Shortened: 1, HeldBy: map[string]int{"other": 1},
		}, trimmed)
		assert.Equal(t, trimmed, dry)
		assert.Equal(t, []uint64{4, 5}, q.left(t, "worker"))
		require.NoError(t, checkpoint.New(q.Journal).PutPosition(t.Context(), checkpoint.Group{Name: "other"}, account("worker"), 1, 5))
		assert.Equal(t, uint64(2), q.trim(t).Events)
		assert.Empty(t, q.left(t, "worker"))
		assert.Zero(t, q.trim(t).Streams)
		q.publish(t, "worker", 1) // numbers continue
		assert.Equal(t, []uint64{6}, q.left(t, "worker"))
		inspection, err := q.Journal.Internal().Inspect(t.Context(), account("worker"), func(*journal.Record) {})
		require.NoError(t, err)
		assert.Empty(t, inspection.Corrupt)
	})
}

func TestATrimKeepsYoungEvents(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		q.begin(t, time.Time{})
		q.publish(t, "worker", 2)
		tomorrow := queue{open(t, q.Client().(*dynamodb.Client), journal.Config{Now: func() time.Time { return time.Now().Add(day - 30*time.Minute) }}), q.later}
		tomorrow.publish(t, "worker", 2)
		q.publish(t, "worker", 1) // with a clock that is behind
		q.acked(t, "worker", 5)

		trimmed := q.trim(t)

		assert.Equal(t, uint64(2), trimmed.Events)
		assert.Empty(t, trimmed.HeldBy)
		assert.Equal(t, []uint64{3, 4, 5}, q.left(t, "worker"))
		_, err := q.Trim(t.Context(), topic, groups.TrimOptions{Keep: time.Second})
		var short *groups.TrimKeepError
		require.ErrorAs(t, err, &short)
		assert.Equal(t, time.Second, short.Keep)
	})
}

func TestATrimKeepsEventsWhoseMetadataHasTheMarkOfTheirAggregate(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		q.begin(t, time.Time{})
		id := account("order")
		given := aggregate.Metadata{"own_stream": metadata.StreamMark(id), "tenant": "a"}
		commit := storage.Commit{Aggregate: id, Events: []storage.Event{{Metadata: given}, {Metadata: given}}}
		// A repository stores metadata of the context in the same way.
		testjournal.Append(t, q.Journal, commit)
		commit.Expected = 2
		_, err := q.Journal.Internal().AppendJoint(t.Context(), storage.Joint{Parts: []storage.Commit{commit}})
		require.NoError(t, err)
		q.acked(t, "order", 4)

		assert.Zero(t, q.trim(t).Events)
		assert.Equal(t, []uint64{1, 2, 3, 4}, q.left(t, "order"))
		for r, err := range q.Events(t.Context(), id, 1, 4) {
			require.NoError(t, err)
			assert.Equal(t, aggregate.Metadata{"tenant": "a"}, r.Metadata)
		}
		assert.Len(t, given, 2, "the caller's metadata stays as it was")
	})
}

func TestATrimTouchesNoOtherAggregate(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		q.begin(t, time.Time{})
		q.write(t, "publisher-00000000-0000-0000-0000-000000000000", 0, 3) // like a stream
		forged := message.NewMessage("", nil)
		forged.Metadata = message.Metadata{"aggregate_id": "order", "own_stream": metadata.StreamMark(account("order"))}
		p, err := publisher.NewPublisher(publisher.Config{Journal: q.Journal, StreamID: "worker"}, nil)
		require.NoError(t, err)
		require.NoError(t, p.Publish(topic, forged))
		q.publish(t, "worker", 2)
		copied := storage.Commit{Aggregate: account("copy"), Events: []storage.Event{{}}}
		for r, err := range q.Events(t.Context(), account("worker"), 1, 1) {
			require.NoError(t, err)
			copied.Events[0].Metadata = r.Metadata
		}
		testjournal.Append(t, q.Journal, copied)
		foreign := message.NewMessage("", nil)
		foreign.Metadata = message.Metadata{"aggregate_id": "worker"}
		require.NoError(t, p.Publish(topic, foreign))
		require.NoError(t, p.Publish(topic, message.NewMessage("", nil)))
		require.NoError(t, p.Close())
		for id, version := range map[string]uint64{"publisher-00000000-0000-0000-0000-000000000000": 3, "order": 1, "copy": 1, "worker": 4} {
			q.acked(t, id, version)
		}

		trimmed := q.trim(t)

		assert.Equal(t, groups.Trimmed{
			Topic: topic, Aggregates: 4, Streams: 1, Events: 2, Shortened: 1, HeldBy: map[string]int{}, Foreign: 1,
		}, trimmed)
		assert.Equal(t, []uint64{3, 4}, q.left(t, "worker"), "up to the event that was published with the id")
		assert.Len(t, q.left(t, "order"), 1)
		assert.Len(t, q.left(t, "copy"), 1)
	})
}

func TestATrimLeavesAnAggregateWithAState(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		q.begin(t, time.Time{})
		q.publish(t, "worker", 1)
		testjournal.Append(t, q.Journal, storage.Commit{
			Aggregate: account("worker"), Expected: 1, Events: []storage.Event{{}}, Snapshot: &journal.Snapshot{Number: 2, Payload: []byte("{}")},
		})
		q.acked(t, "worker", 2)

		assert.Equal(t, 1, q.trim(t).Foreign)
		assert.Len(t, q.left(t, "worker"), 2)
	})
}

func TestATopicWithoutAGroupIsNotTrimmed(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		q.publish(t, "worker", 2)

		_, err := q.later.Trim(t.Context(), topic, keepHour)
		require.ErrorIs(t, err, groups.ErrNoGroups)
		assert.Len(t, q.left(t, "worker"), 2)

		trimmed, err := q.later.Trim(t.Context(), topic, groups.TrimOptions{Keep: time.Hour, WithoutGroups: true})
		require.NoError(t, err)
		assert.Equal(t, uint64(2), trimmed.Events)
	})
}

// fixed is a store of positions that are all the same.
type fixed uint64

func (f fixed) Position(context.Context, subscriber.GroupKey, aggregate.ID) (uint64, bool, error) {
	return uint64(f), true, nil
}

func TestATrimNeedsExternalPositions(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		membership := checkpoint.NewMembership(q.Shards(), time.Time{})
		membership.ExternalPositions = true
		_, err := checkpoint.New(q.Journal).ChangeMembership(t.Context(), checkpoint.Key{Group: group, Topic: topic}, checkpoint.Membership{}, membership)
		require.NoError(t, err)
		q.publish(t, "worker", 3)

		_, err = q.later.Trim(t.Context(), topic, keepHour)
		var external *groups.ExternalPositionsError
		require.ErrorAs(t, err, &external)
		assert.Equal(t, groups.ExternalPositionsError{Group: group, Topic: topic}, *external)
		require.ErrorIs(t, err, groups.ErrExternalPositions)

		later := open(t, q.Client().(*dynamodb.Client), journal.Config{Now: func() time.Time { return time.Now().Add(day) }})
		_, err = groups.New(later.Journal, groups.WithPositions(fixed(2))).Trim(t.Context(), topic, keepHour)
		require.NoError(t, err)
		assert.Equal(t, []uint64{3}, q.left(t, "worker"))
	})
}

func TestSkippedAndDeferredEventsHoldATrimBack(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		q.begin(t, time.Time{})
		q.publish(t, "worker", 4)
		q.acked(t, "worker", 4)
		record := checkpoint.Skipped{Aggregate: account("worker"), Number: 3, Epoch: 1, Attempts: 1, Due: time.Now().Add(time.Hour)}
		require.NoError(t, checkpoint.New(q.Journal).PutSkipped(t.Context(), checkpoint.Group{Name: group}, record))

		assert.Equal(t, map[string]int{group: 1}, q.trim(t).HeldBy)
		assert.Equal(t, []uint64{3, 4}, q.left(t, "worker"))

		require.NoError(t, q.ForgetSkipped(t.Context(), group, account("worker"), 3))
		assert.Equal(t, uint64(2), q.trim(t).Events)
	})
}

func TestADeferredEventIsHandledAfterATrim(t *testing.T) {
	t.Parallel()
	eachQueueInFakeTime(t, func(t *testing.T, q queue) {
		var refuses atomic.Bool
		refuses.Store(true)
		h := &handled{}
		config := q.quick()
		config.Failures = subscriber.Defer(subscriber.Backoff{Pause: time.Hour, MaxPause: time.Hour})
		q.publish(t, "worker", 3)
		h.consume(t, config, func(payload string) bool { return payload == "1" && refuses.Load() })
		eventually(t, "two are handled, and one is deferred", func() bool {
			deferred := 0
			for _, err := range q.Skipped(t.Context(), aggregate.ID{}, 0) {
				if err != nil {
					return false // it has not begun
				}
				deferred++
			}
			return deferred == 1 && h.count() == 2
		})
		q.caughtUp(t)

		assert.Equal(t, uint64(1), q.trim(t).Events)
		refuses.Store(false)
		require.NoError(t, q.RetrySkipped(t.Context(), group, account("worker"), 2))

		eventually(t, "it is handled", func() bool { return h.count() == 3 })
	})
}

func TestAParkedStreamOfAPausedGroupHoldsATrimBack(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		q.begin(t, time.Time{})
		q.publish(t, "worker", 3)
		q.publish(t, "blocked", 3)
		q.acked(t, "worker", 3)
		q.acked(t, "blocked", 1)
		q.park(t, "blocked", 2, "it fails")
		require.NoError(t, q.Pause(t.Context()))

		q.trim(t)

		assert.Empty(t, q.left(t, "worker"))
		assert.Equal(t, []uint64{2, 3}, q.left(t, "blocked"))
	})
}

func TestAGroupThatIsResetHoldsATrimBack(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		q.begin(t, time.Time{})
		q.publish(t, "worker", 3)
		q.acked(t, "worker", 3)
		require.NoError(t, q.Pause(t.Context()))
		require.NoError(t, q.Reset(t.Context(), subscriber.Beginning(), nil))
		assert.Zero(t, q.trim(t).Events)

		require.NoError(t, q.Reset(t.Context(), subscriber.At(time.Now().Add(time.Minute)), nil))
		assert.Equal(t, uint64(3), q.trim(t).Events, "the group begins behind them")
	})
}

func TestALaterGroupReadsWhatIsLeft(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		q.begin(t, time.Time{})
		q.publish(t, "worker", 5)
		q.acked(t, "worker", 3)
		require.Equal(t, uint64(3), q.trim(t).Events)
		config := q.alone()
		config.ConsumerGroup = "later"
		h := &handled{}
		h.consume(t, config, nil)

		eventually(t, "it reads the rest", func() bool { return h.count() == 2 })
		assert.Equal(t, []string{"3", "4"}, h.of("worker"))
	})
}

func TestATrimSparesTheRestOfACommit(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		q.begin(t, time.Time{})
		q.publish(t, "worker", 1)
		p, err := publisher.NewPublisher(publisher.Config{Journal: q.Journal, StreamID: "worker"}, nil)
		require.NoError(t, err)
		require.NoError(t, p.Publish(topic, message.NewMessage("", nil), message.NewMessage("", nil)))
		require.NoError(t, p.Close())
		q.acked(t, "worker", 2)

		assert.Equal(t, map[string]int{group: 1}, q.trim(t).HeldBy)
		assert.Equal(t, []uint64{2, 3}, q.left(t, "worker"))
		q.acked(t, "worker", 3)
		assert.Equal(t, uint64(2), q.trim(t).Events)
	})
}

func TestTrimsRunBesideAPublisherAndEachOther(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		const messages = 60
		h := &handled{}
		h.consume(t, q.alone(), nil)
		eventually(t, "the group has begun", func() bool {
			_, err := q.Status(t.Context())
			return err == nil
		})
		p, err := publisher.NewPublisher(publisher.Config{Journal: q.Journal, StreamID: "worker"}, nil)
		require.NoError(t, err)
		var trims sync.WaitGroup
		// The trims are not canceled: only ResumeInterrupted removes what a canceled trim leaves.
		var over atomic.Bool
		defer trims.Wait()
		defer over.Store(true)
		for range 2 {
			trims.Add(1)
			go func() {
				defer trims.Done()
				for !over.Load() {
					_, err := q.later.Trim(t.Context(), topic, keepHour)
					assert.NoError(t, err)
				}
			}()
		}
		for n := range messages {
			require.NoError(t, p.Publish(topic, message.NewMessage("", fmt.Append(nil, n))))
		}
		eventually(t, "all are handled", func() bool { return h.count() >= messages })
		over.Store(true)
		trims.Wait()
		require.NoError(t, p.Close())

		for n, payload := range h.of("worker")[:messages] {
			assert.Equal(t, fmt.Sprint(n), payload)
		}
		q.caughtUp(t)
		q.trim(t)
		assert.Empty(t, q.left(t, "worker"))
		version, err := q.Version(t.Context(), account("worker"))
		require.NoError(t, err)
		assert.Equal(t, uint64(messages), version)
	})
}

// patient makes a client repeat requests some times, without pauses.
func patient(o *dynamodb.Options) {
	o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
		r.MaxAttempts, r.RateLimiter = 5, ratelimit.None
		r.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return time.Millisecond, nil })
	})
}

func TestATrimGoesOnAfterThrottlingAndInterruption(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		const streams = 40
		db := dynamotest.New(t)
		require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 2, Layout: layout}))
		q := openQueue(t, db.Client())
		q.begin(t, time.Time{})
		for n := range streams {
			q.publish(t, fmt.Sprint("s", n), 3)
			q.acked(t, fmt.Sprint("s", n), 3)
		}
		interrupted, interrupt := context.WithCancel(t.Context())
		later := open(t, db.Client(patient), journal.Config{Now: func() time.Time { return time.Now().Add(day) }})
		db.Inject(dynamotest.Pause(func(context.Context) { interrupt() }), dynamotest.On("BatchWriteItem", "UpdateItem"), dynamotest.Times(1), dynamotest.After(30))
		_, err := later.Trim(interrupted, topic, keepHour)
		require.ErrorIs(t, err, context.Canceled)
		throttling := db.Inject(dynamotest.Throttle(), dynamotest.Chance(0.2))

		trimmed, err := later.Trim(t.Context(), topic, groups.TrimOptions{Keep: time.Hour, ResumeInterrupted: true})

		require.NoError(t, err)
		throttling.Remove()
		assert.NotZero(t, throttling.Fired())
		assert.Less(t, trimmed.Shortened, streams, "some were done before")
		for n := range streams {
			inspection, err := q.Journal.Internal().Inspect(t.Context(), account(fmt.Sprint("s", n)), func(r *journal.Record) {
				assert.Fail(t, "an event is left", "%s %d", r.Aggregate, r.Number)
			})
			require.NoError(t, err)
			assert.Empty(t, inspection.Corrupt)
		}
	})
}

func TestATrimOfManyStreamsCostsWhatItsDocumentationSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		layout               journal.Layout
		read, write, nothing float64 // units of a stream with one event
	}{
		{journal.Classic, 5.1, 5, 0.1},
		{journal.Packed, 9, 8.1, 0.6},
	} {
		t.Run(string(c.layout), func(t *testing.T) {
			t.Parallel()
			const shards, streams = 4, 400
			db := dynamotest.New(t)
			require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: shards, Layout: c.layout}))
			q := openQueue(t, db.Client())
			q.begin(t, time.Time{})
			for n := range streams {
				id := fmt.Sprint("s", n)
				testjournal.Append(t, q.Journal, storage.Commit{Aggregate: account(id), Events: []storage.Event{
					{Payload: []byte("{}"), OwnStream: true},
				}})
				q.acked(t, id, 1)
			}
			pages := 0
			trim := func() (groups.Trimmed, float64, float64) {
				recording := db.Record()
				defer recording.Stop()
				options := groups.TrimOptions{Keep: time.Hour, Progress: func(groups.Trimmed) { pages++ }}
				trimmed, err := q.later.Trim(t.Context(), topic, options)
				require.NoError(t, err)
				read, write := recording.Units()
				return trimmed, read / streams, write / streams
			}

			trimmed, read, write := trim()

			assert.Equal(t, uint64(streams), trimmed.Events)
			assert.GreaterOrEqual(t, pages, shards)
			assert.LessOrEqual(t, read, c.read)
			assert.LessOrEqual(t, write, c.write)

			trimmed, read, write = trim()
			assert.Zero(t, trimmed.Streams)
			assert.LessOrEqual(t, read, c.nothing, "the heads alone")
			assert.Zero(t, write)
		})
	}
}

func TestATopicIsTrimmedAgainAndAgain(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		ctx, stop := context.WithCancel(t.Context())
		q.publish(t, "worker", 1)
		var events uint64
		var refused int
		err := q.later.TrimEvery(ctx, topic, time.Millisecond, keepHour, func(trimmed groups.Trimmed, err error) {
			if errors.Is(err, groups.ErrNoGroups) {
				if refused++; refused == 2 {
					q.begin(t, time.Time{})
					q.acked(t, "worker", 2)
				}
				return
			}
			assert.NoError(t, err)
			if events += trimmed.Events; events == 1 && trimmed.Events == 1 {
				q.publish(t, "worker", 1)
			}
			if events == 2 {
				stop()
			}
		})
		require.NoError(t, err)
		assert.Equal(t, uint64(2), events)

		require.ErrorContains(t, q.later.TrimEvery(t.Context(), topic, 0, keepHour, nil), "the interval is 0s")
		require.ErrorAs(t, q.later.TrimEvery(t.Context(), topic, time.Hour, groups.TrimOptions{}, nil), new(*groups.TrimKeepError))
	})
}

func TestATrimmedStreamIsExportedAndTrimmedAgainWhereItIsImported(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, q queue) {
		q.begin(t, time.Time{})
		q.publish(t, "worker", 4)
		q.acked(t, "worker", 2)
		require.Equal(t, uint64(2), q.trim(t).Events)
		var file bytes.Buffer
		_, err := archive.Export(t.Context(), q.Journal, &file, archive.ExportOptions{})
		require.NoError(t, err)
		for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
			copied := openQueue(t, createIn(t, layout, 3))
			_, err = archive.Import(t.Context(), copied.Journal, bytes.NewReader(file.Bytes()), archive.ImportOptions{})
			require.NoError(t, err)
			assert.Equal(t, []uint64{3, 4}, copied.left(t, "worker"))
			copied.begin(t, time.Time{})
			copied.acked(t, "worker", 3)
			copied.publish(t, "worker", 1)

			assert.Equal(t, uint64(1), copied.trim(t).Events)
			assert.Equal(t, []uint64{4, 5}, copied.left(t, "worker"))
		}
	})
}

func TestATrimOfAnEncryptedJournalNeedsNoKeys(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		client := testdb.Client(t)
		require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 1, Layout: layout, RequiredEncodings: []string{"flip"}}))
		config := journal.Config{Encodings: []journal.Encoding{flip{}}}
		later := journal.Config{Now: func() time.Time { return time.Now().Add(day) }}
		q := queue{open(t, client, config), open(t, client, later).Groups}
		q.begin(t, time.Time{})
		q.publish(t, "worker", 2)
		q.acked(t, "worker", 2)

		assert.Equal(t, uint64(2), q.trim(t).Events)
		q.publish(t, "worker", 1)
		_, err := q.Head(t.Context(), account("worker"))
		require.NoError(t, err, "the snapshot that stands for trimmed events has no encoding")
		later.Encodings = []journal.Encoding{lostKey{}}
		q.later = open(t, client, later).Groups
		assert.Equal(t, []uint64{3}, q.left(t, "worker"))
		q.acked(t, "worker", 3)
		assert.Equal(t, uint64(1), q.trim(t).Events)
	})
}

// lostKey is an encoding that has lost its key.
type lostKey struct{ flip }

func (lostKey) Encode(context.Context, journal.Place, []byte) ([]byte, bool, error) {
	return nil, false, errors.New("the key is lost")
}

// flip is an encoding without a key.
type flip struct{}

func (flip) Name() string  { return "flip" }
func (flip) Overhead() int { return 0 }

func (flip) Encode(_ context.Context, _ journal.Place, payload []byte) ([]byte, bool, error) {
	flipped := slices.Clone(payload)
	slices.Reverse(flipped)
	return flipped, true, nil
}

func (f flip) Decode(ctx context.Context, at journal.Place, encoded []byte) ([]byte, error) {
	payload, _, err := f.Encode(ctx, at, encoded)
	return payload, err
}
