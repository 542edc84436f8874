package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/test/draw"
)

// indexFrom and indexTo are the usual limits of the delay of an index.
const (
	indexFrom = 10 * time.Millisecond
	indexTo   = 100 * time.Millisecond
)

const (
	// promptCommits is the number of commits for the measurement.
	promptCommits = 120
	// promptSlack is the time that an event may take in addition to the longest pause between two
	// polls. The first trailing read is half a second after the date of an event, or a quarter of a
	// second and a poll after that. The rest is for requests and handlers.
	promptSlack = 1500 * time.Millisecond
)

// isPrompt reports whether the settings of a group allow prompt deliveries.
func (g *groupPlan) isPrompt() bool {
	return g.config.Timing.MaxPollInterval <= time.Second && g.handlers.slow == 0 && !g.handlers.sagas && g.failures.policy != skips
}

// measure makes some commits after the storm, and checks whether they are delivered soon.
func (w *world) measure(ctx context.Context) error {
	// A member takes free shards with its next heartbeat.
	pauseFor(ctx, w.plan.longestLease()/4+time.Second)
	w.oracle.note("measure", "")
	to := indexTo
	if w.plan.sabotage == Blink { // more events need the first trailing reads
		to *= 4
	}
	lag := w.database.Inject(dynamotest.DelayIndex(indexFrom, to), dynamotest.Index(tailIndex))
	defer lag.Remove()
	r := draw.Derive(w.disturbance)
	log, version := w.journal.Internal(), map[aggregate.ID]uint64{}
	type commit struct {
		stream
		number uint64
		at     time.Duration
	}
	var commits []commit
	w.oracle.watchHandOuts()
	for n := range promptCommits {
		id := aggregate.ID{Type: draw.Pick(r, w.plan.topics...), Value: fmt.Sprint("p", r.IntN(8))}
		number := version[id] + 1
		event := fmt.Sprint("prompt-", n)
		_, err := log.Append(ctx, storage.Commit{Aggregate: id, Expected: version[id], Events: []storage.Event{
			{ID: event, Type: eventType(number), Payload: []byte(`{}`)},
		}})
		if err != nil {
			return fmt.Errorf("commit to measure: %w", err)
		}
		version[id] = number
		commits = append(commits, commit{stream{topic: id.Type, id: id.Value}, number, w.trace.now()})
		w.oracle.committed("measure", streamOf(id), number, []string{event})
		pauseFor(ctx, draw.UpTo(r, 60*time.Millisecond))
	}
	w.events += len(commits)
	heads, err := w.heads(ctx)
	if err != nil {
		return err
	}
	w.await(ctx, heads)
	for _, g := range w.plan.groups {
		if !g.isPrompt() {
			continue
		}
		most, late, longest := g.config.Timing.MaxPollInterval+promptSlack, 0, time.Duration(0)
		for _, c := range commits {
			took, ok := w.oracle.handedOut(stream{g.name, c.topic, c.id}, c.number)
			if took -= c.at; ok && took > most {
				late++
			}
			longest = max(longest, took)
		}
		w.oracle.count("measured", len(commits))
		if late > 0 {
			w.oracle.find(Slow, "%s: %d of %d events were handed out more than %v after their commit, up to %v, though all was calm", g.name, late, len(commits), most, longest)
		}
	}
	return nil
}

// watchHandOuts makes the oracle record when each event is delivered first.
func (o *oracle) watchHandOuts() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.handOuts = map[stream]map[uint64]time.Duration{}
}

// handedOut returns when an event was delivered first.
func (o *oracle) handedOut(s stream, number uint64) (at time.Duration, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ok = o.handOuts[s][number]
	return at, ok
}

func (o *oracle) noteHandOut(s stream, number uint64) {
	if o.handOuts == nil {
		return
	}
	if o.handOuts[s] == nil {
		o.handOuts[s] = map[uint64]time.Duration{}
	}
	if _, again := o.handOuts[s][number]; !again {
		o.handOuts[s][number] = o.trace.now()
	}
}
