package subscriber_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

func shortLease(j *journal.Journal) subscriber.Config {
	config := quick(j)
	config.Timing.LeaseDuration = time.Second
	return config
}

// numbers returns the shards that subscribers own.
func numbers(subs ...*subscriber.Subscriber) (held []int) {
	for _, sub := range subs {
		for _, shard := range sub.Shards() {
			held = append(held, shard.Shard)
		}
	}
	return held
}

func TestShardsAreSharedFairlyWhileMembersJoinAndLeave(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := setup(t, 5)
		all := []int{0, 1, 2, 3, 4}
		first, _ := subscribe(t, shortLease(j))
		eventually(t, "the only member holds all shards", func() bool { return len(numbers(first)) == 5 })

		second, _ := subscribe(t, shortLease(j))
		third, _ := subscribe(t, shortLease(j))
		fair := func(subs ...*subscriber.Subscriber) func() bool {
			return func() bool {
				for _, sub := range subs {
					if n := len(numbers(sub)); n < 5/len(subs) || n > (5+len(subs)-1)/len(subs) {
						return false
					}
				}
				return len(numbers(subs...)) == 5
			}
		}
		eventually(t, "three members share", fair(first, second, third))
		assert.ElementsMatch(t, all, numbers(first, second, third), "each shard has one owner")

		require.NoError(t, first.Close())
		eventually(t, "two members share", fair(second, third))
		assert.ElementsMatch(t, all, numbers(second, third))
	})
}

func TestMoreMembersThanShardsStandBy(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := setup(t, 1)
		write(t, j, "x", 0, 1)
		first, messages := subscribe(t, shortLease(j))
		receiveAll(t, messages, 1)
		standby, more := subscribe(t, shortLease(j))
		write(t, j, "x", 1, 1)
		assert.Equal(t, expect("x", 2, 2), receiveAll(t, messages, 1))
		assert.Empty(t, standby.Shards())

		require.NoError(t, first.Close())
		write(t, j, "x", 2, 1)
		assert.Equal(t, expect("x", 3, 3), receiveAll(t, more, 1))
	})
}

func TestAMemberWithoutTheReplyToItsJoinJoinsOnce(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]int{"as the first": 0, "as another": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := create(t, 2)
			faulty, j := dynamotest.NewProxy(t, client), open(t, client)
			write(t, j, "x", 0, 1)
			for range others {
				_, messages := subscribe(t, quick(j))
				receiveAll(t, messages, 1)
			}
			lost := faulty.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems", "UpdateItem"), dynamotest.Times(1))
			sub, _ := subscribe(t, quick(open(t, faulty.Client(testdb.Once))))
			eventually(t, "it works on its share", func() bool { return len(numbers(sub)) == 2/(1+others) })

			assert.Equal(t, 1, lost.Fired())
			assert.EqualValues(t, 1+others, membership(t, j).Joined)
			assert.Len(t, membership(t, j).Members, 1+others)
			require.NoError(t, sub.Close())
			assert.Len(t, membership(t, j).Members, others)
		})
	}
}

// Members join and leave while events are written. An event that was acked by a member that closes
// is never delivered again, and the order holds across members.
func TestNothingIsLostOrDoubledWhileMembersJoinAndLeave(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 2} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			const aggregates, each = 30, 40
			random := rand.New(rand.NewPCG(seed, 0))
			client := create(t, 6)
			d := &deliveries{last: map[string]uint64{}}
			var consumers sync.WaitGroup
			logged := watermill.NewCaptureLogger()
			join := func() *subscriber.Subscriber {
				config := quick(open(t, client))
				// The lease is short enough for members to share the shards during the test, and
				// mostly long enough for none to lose it.
				config.Timing.LeaseDuration, config.CloseTimeout = 4*time.Second, 20*time.Second
				sub, err := subscriber.NewSubscriber(config, logged)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, sub.Close()) })
				messages, err := sub.Subscribe(t.Context(), topic)
				require.NoError(t, err)
				for range 4 {
					consumers.Add(1)
					go func() {
						defer consumers.Done()
						for msg := range messages {
							if assert.NoError(t, d.note(msg)) {
								msg.Ack()
							} else {
								msg.Nack()
							}
						}
					}()
				}
				return sub
			}
			members := []*subscriber.Subscriber{join()}
			writer := open(t, client)
			for n := range each {
				for i := range aggregates {
					write(t, writer, fmt.Sprint("a", i), n, 1)
				}
				if random.IntN(4) > 0 {
					continue
				}
				if len(members) < 4 && random.IntN(2) == 0 {
					members = append(members, join())
				} else if len(members) > 1 {
					i := random.IntN(len(members))
					require.NoError(t, members[i].Close())
					members = append(members[:i], members[i+1:]...)
				}
			}
			for i := range aggregates {
				id := fmt.Sprint("a", i)
				eventually(t, "all events of "+id+" come", func() bool { return d.has(id) == each })
			}
			for _, sub := range members {
				require.NoError(t, sub.Close())
			}
			consumers.Wait()
			if slices.ContainsFunc(logged.Captured()[watermill.InfoLogLevel], func(m watermill.CapturedMessage) bool {
				return strings.HasPrefix(m.Msg, "Lost a shard")
			}) {
				t.Log("a member has lost its lease, so some events may come twice")
				return
			}
			assert.Equal(t, aggregates*each, d.all, "each event comes once")
		})
	}
}

func TestAMemberThatIsKilledIsReplacedWithinTheLease(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 2)
		write(t, open(t, client), "x", 0, 3)
		p := &process{Client: client}
		_, messages := subscribe(t, shortLease(open(t, p)))
		receiveAll(t, messages, 1)
		p.kill()

		_, standby := subscribe(t, shortLease(open(t, client)))
		for msg := receive(t, standby); ; msg = receive(t, standby) {
			msg.Ack()
			if string(msg.Payload) == "x/3" {
				return
			}
		}
	})
}

func TestAMemberThatLostItsLeaseCannotMoveAPosition(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 1)
		write(t, open(t, client), "x", 0, 3)
		p := &process{Client: client}
		config := shortLease(open(t, p))
		config.Timing.CommitInterval = time.Hour
		zombie, messages := subscribe(t, config)
		late := receive(t, messages)
		position, ok := subscriber.PositionFromContext(late.Context())
		require.True(t, ok)
		p.kill()

		standby, again := subscribe(t, shortLease(open(t, client)))
		msg := receive(t, again)
		assert.Equal(t, "x/1", string(msg.Payload), "the new owner begins at the stored position")
		ended(t, late)

		p.revive()
		err := position.Commit(t.Context(), func(ctx context.Context, advance subscriber.Advance) error {
			return transact(ctx, client, advance)
		})
		require.ErrorIs(t, err, subscriber.ErrFenced)
		late.Ack()
		require.NoError(t, zombie.Close())
		msg.Ack()
		assert.Equal(t, expect("x", 2, 3), receiveAll(t, again, 2))
		require.NoError(t, standby.Close())
	})
}

// ended waits for the end of a message's context.
func ended(t *testing.T, msg *message.Message) {
	t.Helper()
	await.End(t, msg.Context().Done(), "the member that lost its lease must tell its handler")
}

// A message that was made but not received when its shard is lost must not be delivered.
func TestAMemberThatLostItsLeaseHandsOutNothingMore(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 1)
		j := open(t, client)
		write(t, j, "x", 0, 1)
		p := &process{Client: client}
		_, messages := subscribe(t, shortLease(open(t, p)))
		receiveAll(t, messages, 1)
		write(t, j, "y", 0, 1) // the message waits, because the channel has no receiver
		p.kill()

		_, again := subscribe(t, shortLease(open(t, client)))
		eventually(t, "the other member goes on", func() bool {
			msg := receive(t, again)
			msg.Ack()
			return string(msg.Payload) == "y/1"
		})
		select {
		case msg := <-messages:
			t.Fatalf("the member without a lease handed out %s", msg.Payload)
		default:
		}
	})
}

func TestAMemberThatComesBackJoinsAgain(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 4)
		p := &process{Client: client}
		back, messages := subscribe(t, shortLease(open(t, p)))
		other, _ := subscribe(t, shortLease(open(t, client)))
		p.kill()
		eventually(t, "the other member takes all", func() bool { return len(numbers(other)) == 4 && len(numbers(back)) == 0 })
		p.revive()
		eventually(t, "they share again", func() bool { return len(numbers(other)) == 2 && len(numbers(back)) == 2 })
		held := map[int]bool{}
		for _, n := range numbers(back) {
			held[n] = true
		}
		j := open(t, client)
		for i := 0; ; i++ { // an aggregate on a shard of the one that came back
			if id := fmt.Sprint("a", i); held[j.Internal().Shard(account(id))] {
				write(t, j, id, 0, 1)
				assert.Equal(t, expect(id, 1, 1), receiveAll(t, messages, 1))
				return
			}
		}
	})
}
