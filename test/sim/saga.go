package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	pm "github.com/millrace-dev/millrace/process"
)

// A saga follows a few aggregates. For each of their events of the type happened it takes a step
// and sends a command, and it sets its timeout again or cancels it. When nothing happens for a
// while it wakes up and sets the timeout again, a few times. Some steps end it.

type saga struct {
	Last  source
	Steps int
	Woke  int // since the last step
	Over  bool
}

// source is the event of a step.
type source struct {
	Topic, ID string
	Number    uint64
}

func (s source) stream() stream { return stream{topic: s.Topic, id: s.ID} }

func (s source) String() string { return fmt.Sprintf("%s/%s #%d", s.Topic, s.ID, s.Number) }

type (
	stepped struct {
		source
		Steps int // including this one
		// Possibly long before the event was written and dated.
		Decided time.Time
	}
	woken struct {
		Times   int // since the last step
		Decided time.Time
	}
	act struct {
		source
		Steps int
		Woken int // how often the saga had woken
		Place int // among the commands of one step
	}
)

func (a act) String() string {
	return fmt.Sprintf("%s, step %d, woken %d times, command %d", a.source, a.Steps, a.Woken, a.Place)
}

func (stepped) EventType() string { return "stepped" }
func (woken) EventType() string   { return "woken" }

func (e stepped) Apply(s *saga) { *s = saga{Last: e.source, Steps: e.Steps, Over: e.ends()} }
func (e woken) Apply(s *saga)   { s.Woke = e.Times }

func (s source) cancels() bool { return s.Number%7 == 3 }

// ends reports whether a step is the last. It does not change a timeout that is set.
func (s source) ends() bool { return s.Number%50 == 49 }

// acts returns the commands of a step.
func (e stepped) acts() []act {
	acts := []act{{source: e.source, Steps: e.Steps}}
	if e.Number%3 == 0 {
		acts = append(acts, act{source: e.source, Steps: e.Steps, Place: 1})
	}
	return acts
}

const (
	sagaPrefix  = "saga."
	sagaTimeout = "nap"
	mostNaps    = 2 // in a row
)

// sagaPlan holds the random choices for process managers.
type sagaPlan struct {
	// The aggregates of each topic that one saga follows. If there are several, of all topics.
	sources int
	nap     time.Duration // until a saga wakes up
	retry   time.Duration // until another manager repeats a failed attempt
	polls   time.Duration
	queues  int           // maximum number of queues of a life
	wander  time.Duration // maximum error of the clocks
	think   time.Duration // maximum time of a reaction
	fail    float64       // probability that a reaction fails
	// Probability that the process crashes within a reaction, and before and after it sends a
	// command.
	crash float64
	// Probabilities for a command on its way, in addition to those of all wires.
	cut, lost float64
}

func sagaType(group string) string { return sagaPrefix + group }

// sagaOf returns the saga that follows an aggregate.
func (p sagaPlan) sagaOf(topic, id string) string {
	n, err := strconv.Atoi(strings.TrimPrefix(id, "a"))
	if err != nil || p.sources == 1 {
		return topic + "." + id
	}
	return fmt.Sprint("s", n/p.sources)
}

// longest returns the time until all sagas have finished when nothing happens any more: their naps,
// repeated attempts, clocks that differ, and the time until a life learns of more queues.
func (p sagaPlan) longest() time.Duration {
	longest := (mostNaps+1)*(p.nap+p.polls) + 3*p.retry + 6*p.wander + time.Second
	if p.queues > 1 {
		longest += time.Minute
	}
	return longest
}

// defineSagas defines the process manager of a life. Its reactions take some time, and fail.
func (l *life) defineSagas() pm.Definition[saga] {
	plan := l.process.world.plan.sagas
	return pm.Define(aggregate.Define[saga](sagaType(l.member.group), stepped{}, woken{}),
		pm.On(func(_ happened, in pm.Input) string { return plan.sagaOf(in.Source.Type, in.Source.Value) },
			func(s saga, _ happened, in pm.Input) (pm.Step[saga], error) {
				e := stepped{source{in.Source.Type, in.Source.Value, in.Number}, s.Steps + 1, l.journal.Config().Now()}
				step := pm.Record(e)
				for _, a := range e.acts() {
					step = step.Send(a)
				}
				switch {
				case e.ends():
				case e.cancels():
					step = step.CancelTimeout(sagaTimeout)
				default:
					step = step.SetTimeout(sagaTimeout, plan.nap)
				}
				return step, l.think()
			}).Starts(),
		pm.OnTimeout(sagaTimeout, func(s saga, _ pm.Input) (pm.Step[saga], error) {
			step := pm.Record(woken{s.Woke + 1, l.journal.Config().Now()}).
				Send(act{source: s.Last, Steps: s.Steps, Woken: s.Woke + 1})
			if s.Woke+1 < mostNaps {
				step = step.SetTimeout(sagaTimeout, plan.nap)
			}
			return step, l.think()
		}),
	).EndsWhen(func(s saga) bool { return s.Over })
}
