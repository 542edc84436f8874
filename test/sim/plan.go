package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/test/draw"
)

// plan holds the random choices of a world, drawn from its seed and number.
type plan struct {
	layout journal.Layout
	// Partitions of the tail for each shard, at the end.
	growth             int
	growsAfter         time.Duration // since the start
	shards, aggregates int           // aggregates of each topic
	topics             []string
	groups             []groupPlan
	commits            int // of all writers together
	commit             int // maximum number of events in a commit
	writers            int
	duration           time.Duration // approximate duration of writing
	trailing           time.Duration
	quality            quality
	troubles           troubles
	// Frequency of each fault of the database, 0 for never.
	faults      float64
	indexLag    time.Duration
	wrongClocks bool // clocks of some writers are wrong by hours
	operators   bool // operators pause groups
	// Each event leads to a transaction in most groups, so there are few events.
	dear       bool
	sagas      sagaPlan
	disruption disruptionPlan
	sabotage   Sabotage
}

// groupPlan holds the random choices of a group. Settings that depend on each other across members
// are the same for all of them.
type groupPlan struct {
	name     string
	members  int
	handlers handlerPlan
	config   subscriber.Config
	failures failurePlan
}

// handlerPlan holds the random choices for the handlers of a group.
type handlerPlan struct {
	projection bool          // effects commit with the position
	runs       bool          // handles runs of events
	sagas      bool          // process managers
	workers    int           // concurrent messages of each member
	work       time.Duration // approximate time for a message
	// Probability that it takes up to a hundred times as long.
	slow float64
	nack float64
	// Probability that it takes as long as hangs, or until its context ends.
	hang  float64
	hangs time.Duration
}

// troubles says how long processes run without trouble, and what happens to them then.
type troubles struct {
	every, down                      time.Duration // averages
	crash, stall, closes, theft, sum float64       // weights
	stalls                           time.Duration // maximum
}

func newPlan(r *rand.Rand, w World) *plan {
	p := &plan{
		topics:     []string{"order", "parcel"}[:draw.Pick(r, 1, 1, 2)],
		shards:     draw.Pick(r, 1, 1, 2, 3, 4, 8, 8, 16, 32, 64),
		aggregates: draw.Pick(r, 1, 4, 16, 16, 40, 100, 250),
		commits:    150 + r.IntN(350),
		// Large commits are expensive to write, and each event reaches each group.
		commit:   draw.Pick(r, 4, 20, 99, 99, 99, 99, 99, 99),
		writers:  1 + r.IntN(5),
		duration: seconds(r, 10, 30),
		trailing: time.Duration(draw.Pick(r, 4, 6, 10)) * time.Second,
		quality: quality{
			latency:       time.Duration(draw.Pick(r, 200, 1000, 4000)) * time.Microsecond,
			spikes:        draw.Pick(r, 0, 0.001, 0.01),
			arrivesOnExit: 0.5,
			network: draw.Network{
				Cut:    draw.Pick(r, 0, 0, 0.002, 0.02),
				Lost:   draw.Pick(r, 0, 0.002, 0.01, 0.03),
				Late:   draw.Pick(r, 0, 0, 0.002, 0.01),
				LateBy: 300 * time.Millisecond,
			},
		},
		faults:      draw.Pick(r, 0, 0.001, 0.005, 0.02),
		wrongClocks: r.IntN(3) == 0,
		operators:   r.IntN(3) == 0,
		sabotage:    w.Sabotage,
	}
	p.layout = newLayout(w)
	p.growth, p.growsAfter = newGrowth(w, p)
	if w.Small {
		p.commits, p.duration, p.shards = p.commits/12, p.duration/2, min(p.shards, 8)
	}
	p.sagas = newSagaPlan(r)
	p.sagas.polls *= time.Duration(p.sagas.queues)
	// the first world is one of them
	if p.dear = w.Number%3 == 0 && p.sabotage == "" || p.sabotage.ofSagas(); p.dear {
		p.makeDear(r, w.Small)
	}
	p.indexLag = draw.UpTo(r, p.trailing/8)
	p.troubles = troubles{
		every: seconds(r, 3, 30), down: seconds(r, 1, 8), stalls: seconds(r, 1, 20),
		crash: r.Float64(), stall: r.Float64(), closes: r.Float64(), theft: r.Float64() / 2,
	}
	if p.dear {
		p.troubles.every, p.troubles.down, p.troubles.stalls = seconds(r, 2, 10), seconds(r, 0, 3), seconds(r, 0, 5)
	}
	if p.operators && r.IntN(2) == 0 {
		p.troubles.theft = 0
	}
	p.troubles.sum = p.troubles.crash + p.troubles.stall + p.troubles.closes + p.troubles.theft
	groups := draw.Pick(r, 1, 2, 4, 6, 8)
	if w.Small || p.dear {
		groups = min(groups, 2)
	}
	for g := range groups {
		p.groups = append(p.groups, newGroupPlan(r, p, fmt.Sprint("g", g+1), groups))
	}
	if p.sabotage == Unstop {
		p.operators = false // they would resume a stopped group
	}
	if p.sabotage == Forget || p.sabotage == Unfence { // so that the sabotage is visible
		p.troubles.every, p.quality.network.Late = 4*time.Second, 0.1
	}
	return p
}

// newLayout draws the layout of the journal, from its own source of random numbers. A world with a
// sabotage has the classic layout.
func newLayout(w World) journal.Layout {
	switch {
	case w.Layout != "":
		return w.Layout
	case w.Sabotage != "":
		return journal.Classic
	}
	r := draw.New(^w.Seed, w.Number)
	return draw.Pick(r, journal.Classic, journal.Packed)
}

// newGrowth draws when writers start to use more partitions of the tail, from its own source of
// random numbers. Factor is the number for each shard, 1 for no growth.
func newGrowth(w World, p *plan) (factor int, after time.Duration) {
	if p.layout != journal.Packed || w.Sabotage != "" {
		return 1, 0
	}
	r := draw.New(^w.Seed, ^w.Number)
	return draw.Pick(r, 1, 2, 4), draw.UpTo(r, p.duration)
}

func newGroupPlan(r *rand.Rand, p *plan, name string, groups int) groupPlan {
	// Polls of idle shards and heartbeats are the most expensive part. There are at most about 30
	// of each per second.
	poll := max(time.Duration(draw.Pick(r, 50, 200, 500))*time.Millisecond,
		min(10*time.Second, time.Duration(groups*len(p.topics)*p.shards)*30*time.Millisecond))
	members := draw.Pick(r, 1, 2, 2, 3, 3, 4, 5, 8)
	if p.dear {
		members = min(members, 4) // each polls for timeouts too
	}
	lease := max(time.Duration(draw.Pick(r, 2, 5, 10))*time.Second, time.Duration(groups*len(p.topics)*members)*130*time.Millisecond)
	g := groupPlan{
		name: name, members: members,
		config: subscriber.Config{
			ConsumerGroup:      name,
			MaxInFlight:        draw.Pick(r, 1, 4, 64, 64),
			BufferBytes:        draw.Pick(r, 1<<10, 64<<10, 0, 0),
			NackResendSleep:    draw.Pick(r, -1, 20*time.Millisecond, 0),
			MaxNackResendSleep: draw.Pick(r, 0, 500*time.Millisecond, 2*time.Second),
			AckDeadline:        time.Duration(draw.Pick(r, 0, 0, 500, 5000)) * time.Millisecond,
			Timing: subscriber.Timing{
				ReconcileInterval: seconds(r, 10, 40),
				PollInterval:      poll,
				MaxPollInterval:   max(2*poll, time.Second),
				TrailingDelay:     p.trailing,
				CommitInterval:    time.Duration(draw.Pick(r, 200, 500, 1000, 3000)) * time.Millisecond,
				BehindAfter:       time.Duration(draw.Pick(r, 1, 5, 30)) * time.Second,
				LeaseDuration:     lease,
			},
			CloseTimeout: time.Duration(draw.Pick(r, 200, 1000, 5000)) * time.Millisecond,
		},
		handlers: handlerPlan{
			// With a projection each event is a separate transaction, so the world must be small. A
			// sabotage of the fence shows soonest there.
			projection: (r.IntN(3) == 0 || p.sabotage == Unfence) && p.commits*p.commit < 5_000,
			workers:    draw.Pick(r, 1, 8, 1000),
			work:       time.Duration(draw.Pick(r, 0, 100, 2000)) * time.Microsecond,
			slow:       draw.Pick(r, 0, 0.01),
			nack:       draw.Pick(r, 0, 0.002, 0.01, 0.05),
			hang:       draw.Pick(r, 0, 0, 0.0003),
			hangs:      seconds(r, 1, 40),
		},
	}
	g.handlers.runs = g.handlers.projection && r.IntN(2) == 0
	g.handlers.sagas = !g.handlers.projection && (p.dear || r.IntN(6) == 0 && p.commits*p.commit < 5_000)
	if g.handlers.sagas {
		// Usually after the work was done.
		g.handlers.nack = draw.Pick(r, 0.01, 0.05, 0.2)
	}
	if r.IntN(3) == 0 {
		g.config.EventTypes = []string{happened{}.EventType()}
	}
	g.failures = newFailurePlan(r, p, g)
	g.config.Failures = g.failures.setting()
	return g
}

func newSagaPlan(r *rand.Rand) sagaPlan {
	return sagaPlan{
		sources: draw.Pick(r, 1, 1, 2, 4),
		nap:     time.Duration(draw.Pick(r, 200, 1000, 4000)) * time.Millisecond,
		retry:   time.Duration(draw.Pick(r, 500, 2000)) * time.Millisecond,
		polls:   time.Duration(draw.Pick(r, 100, 500)) * time.Millisecond,
		queues:  draw.Pick(r, 1, 1, 3),
		wander:  time.Duration(draw.Pick(r, 0, 0, 300, 3000)) * time.Millisecond,
		think:   time.Duration(draw.Pick(r, 0, 50, 1000)) * time.Millisecond,
		fail:    draw.Pick(r, 0, 0.01),
		crash:   draw.Pick(r, 0, 0.005, 0.02),
		cut:     draw.Pick(r, 0, 0.05, 0.2), lost: draw.Pick(r, 0, 0.05, 0.2),
	}
}

// makeDear makes fewer events happen, a few at a time, so that events of other aggregates and
// timeouts come between those of one aggregate.
func (p *plan) makeDear(r *rand.Rand, small bool) {
	p.commits, p.commit, p.aggregates, p.shards = 200+r.IntN(400), draw.Pick(r, 1, 4, 10), draw.Pick(r, 1, 4, 16, 40), min(p.shards, 4)
	if small {
		p.commits /= 4
	}
	p.quality.network.Lost = draw.Pick(r, 0.01, 0.03)
}

func (p *plan) longestLease() (longest time.Duration) {
	for _, g := range p.groups {
		longest = max(longest, g.config.Timing.LeaseDuration)
	}
	return longest
}

func (p *plan) String() string {
	s := fmt.Sprintf("%s, shards %d (%d partitions each after %v), topics %d, aggregates %d, %d commits of up to %d events by %d writers in %v, trailing %v, index lag %v, faults %v, wrong clocks %v, operators %v\nwire %+v\ntroubles %+v\nsagas %+v\ndisruptions %+v",
		p.layout, p.shards, p.growth, p.growsAfter, len(p.topics), p.aggregates, p.commits, p.commit, p.writers, p.duration, p.trailing, p.indexLag, p.faults, p.wrongClocks, p.operators, p.quality, p.troubles, p.sagas, p.disruption)
	for _, g := range p.groups {
		c := g.config
		s += fmt.Sprintf("\n%s: members %d, in flight %d, buffer %d, nack %v to %v, deadline %v, reconcile %v, types %v, poll %v to %v, commit %v, behind %v, lease %v, close %v; handlers %+v, failures %+v",
			g.name, g.members, c.MaxInFlight, c.BufferBytes, c.NackResendSleep, c.MaxNackResendSleep, c.AckDeadline, c.Timing.ReconcileInterval, c.EventTypes, c.Timing.PollInterval, c.Timing.MaxPollInterval,
			c.Timing.CommitInterval, c.Timing.BehindAfter, c.Timing.LeaseDuration, c.CloseTimeout, g.handlers, g.failures)
	}
	return s
}

func seconds(r *rand.Rand, least, most int) time.Duration {
	return time.Duration(least)*time.Second + draw.UpTo(r, time.Duration(most-least)*time.Second)
}
