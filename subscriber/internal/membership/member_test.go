package membership_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/internal/membership"
)

const (
	shards = 7
	lease  = 10 * time.Second
)

// group is a group whose members only note which shards they work on.
type group struct {
	t      *testing.T
	client *dynamodb.Client

	mu      sync.Mutex
	random  *rand.Rand
	working map[int][]*work // by shard: works that were neither lost nor have ended
	began   int             // number of works
}

func newGroup(t *testing.T, seed uint64) *group {
	client := testdb.Client(t)
	testjournal.New(t, client, journal.Config{Shards: shards, Layout: journal.Packed})
	return &group{t: t, client: client, random: rand.New(rand.NewPCG(seed, 0)), working: map[int][]*work{}}
}

// draw returns a random duration below most.
func (g *group) draw(most time.Duration) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Duration(g.random.Int64N(int64(most)))
}

// work is the work of a member on a shard. It ends some time after it was told to stop.
type work struct {
	group  *group
	member *member
	shard  int
	stop   func()
	lose   func()
	ending chan struct{}
	lost   chan struct{}
}

func (w *work) Stop() { w.stop() }
func (w *work) Lose() { w.lose() }

func (w *work) IsFenced() bool { return true }

func (w *work) IsLost() bool {
	select {
	case <-w.lost:
		return true
	default:
		return false
	}
}

func (w *work) Run() {
	select {
	case <-w.lost:
		return
	case <-w.ending:
	}
	select {
	case <-w.lost:
	case <-time.After(w.group.draw(time.Second)):
		w.group.end(w)
	}
}

func (g *group) begin(m *member, term membership.Term) *work {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &work{group: g, member: m, shard: term.Shard, ending: make(chan struct{}), lost: make(chan struct{})}
	w.stop = sync.OnceFunc(func() { close(w.ending) })
	w.lose = sync.OnceFunc(func() { g.end(w); close(w.lost) })
	for _, other := range g.working[term.Shard] {
		assert.Fail(g.t, "two members work on one shard", "shard %d, %s and %s", term.Shard, other.member.name, m.name)
	}
	g.working[term.Shard] = append(g.working[term.Shard], w)
	g.began++
	return w
}

// end notes that a work may do nothing more.
func (g *group) end(w *work) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.working[w.shard] = slices.DeleteFunc(g.working[w.shard], func(other *work) bool { return other == w })
}

// shares returns the number of shards on which each member works.
func (g *group) shares() map[*member]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	shares := map[*member]int{}
	for _, works := range g.working {
		for _, w := range works {
			shares[w.member]++
		}
	}
	return shares
}

// member is a process with a connection of its own.
type member struct {
	name  string
	proxy *dynamotest.Proxy
	cut   *dynamotest.Injection // nil while it is connected
	leave context.CancelFunc
	left  chan struct{}
}

// join starts a member.
func (g *group) join(name string) *member {
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{name: name, proxy: dynamotest.NewProxy(g.t, g.client), leave: cancel, left: make(chan struct{})}
	j := testjournal.Open(g.t, m.proxy.Client(), journal.Config{})
	one := membership.New(membership.Config{
		Checkpoint: checkpoint.New(j), Key: checkpoint.Key{Group: "group", Topic: "account"}, Shards: shards,
		Lease: lease, Name: name, Now: time.Now, Logger: watermill.NopLogger{},
		Start: func(t time.Time) time.Time { return t }, Closing: context.Background(),
		Accepts: func(checkpoint.Membership) error { return nil },
	}, func(term membership.Term) *work { return g.begin(m, term) })
	go func() {
		defer close(m.left)
		one.Run(ctx, time.Now(), checkpoint.Membership{})
	}()
	return m
}

// disconnect makes the requests of a member fail or hang, or connects it again.
func (m *member) disconnect(hang bool) {
	switch {
	case m.cut != nil:
	case hang:
		m.cut = m.proxy.Inject(dynamotest.Pause(func(ctx context.Context) { <-ctx.Done() }))
		return
	default:
		m.cut = m.proxy.Inject(dynamotest.CutConnection())
		return
	}
	m.cut.Remove()
	m.cut = nil
}

// Members join, leave, and lose their connections for longer than the lease, while the database
// throttles and replies are lost. No two members ever work on one shard. Afterwards the members
// share all shards fairly.
func TestNoTwoMembersEverWorkOnOneShard(t *testing.T) {
	t.Parallel()
	seeds := uint64(5)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				g := newGroup(t, seed)
				random := rand.New(rand.NewPCG(seed, 1))
				var members []*member
				for i := range 60 {
					switch one := random.IntN(len(members) + 1); {
					case one == len(members) && one < 5:
						members = append(members, g.join(fmt.Sprint("member ", i)))
						members[one].proxy.Inject(dynamotest.Throttle(), dynamotest.Chance(0.2))
						members[one].proxy.Inject(dynamotest.LoseReply(), dynamotest.Chance(0.05))
					case one == len(members) || random.IntN(3) > 0:
						members[random.IntN(len(members))].disconnect(random.IntN(2) == 0)
					default:
						members[one].leave()
						if members[one].cut == nil {
							<-members[one].left
						}
						members = slices.Delete(members, one, one+1)
					}
					time.Sleep(time.Duration(random.Int64N(int64(2 * lease))))
				}
				for len(members) < 3 {
					members = append(members, g.join(fmt.Sprint("last member ", len(members))))
				}
				for _, m := range members {
					if m.cut != nil {
						m.disconnect(false)
					}
				}
				time.Sleep(10 * lease)
				shares := g.shares()
				for _, m := range members {
					assert.GreaterOrEqual(t, shares[m], shards/len(members), m.name)
					assert.LessOrEqual(t, shares[m], (shards+len(members)-1)/len(members), m.name)
				}
				assert.Greater(t, g.began, 2*shards, "shards have moved")
				for _, m := range members {
					m.leave()
					<-m.left
				}
				assert.Empty(t, g.shares())
			})
		})
	}
}

// The share of a member that leaves goes to the others without waiting for a lease.
func TestAMemberThatLeavesFreesItsShardsAtOnce(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		g := newGroup(t, 1)
		first, second := g.join("first"), g.join("second")
		time.Sleep(3 * lease)
		require.Len(t, g.shares(), 2)
		first.leave()
		<-first.left
		time.Sleep(lease)
		assert.Equal(t, map[*member]int{second: shards}, g.shares())
		second.leave()
		<-second.left
	})
}
