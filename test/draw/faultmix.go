package draw

import (
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/dynamotest"
)

// FaultMix is a set of faults that are in place. The zero value has none.
type FaultMix struct{ injections []*dynamotest.Injection }

// Injector is a DB or a Proxy of dynamotest.
type Injector interface {
	Inject(fault dynamotest.Fault, when ...dynamotest.When) *dynamotest.Injection
}

// Inject puts a fault in place.
func (m *FaultMix) Inject(into Injector, fault dynamotest.Fault, when ...dynamotest.When) *dynamotest.Injection {
	i := into.Inject(fault, when...)
	m.injections = append(m.injections, i)
	return i
}

// Arrive lets the requests that are late arrive now.
func (m *FaultMix) Arrive() {
	for _, i := range m.injections {
		i.Arrive()
	}
}

// End removes the faults, and lets the requests that are late arrive.
func (m *FaultMix) End() {
	for _, i := range m.injections {
		i.Remove()
	}
	m.Arrive()
}

// Network is how often the connection of a process fails.
type Network struct {
	Cut    float64       // the chance that a request does not arrive
	Lost   float64       // the chance that a reply does not
	Late   float64       // the chance that a request arrives after its caller gave it up
	LateBy time.Duration // at most; if 0, it arrives when [FaultMix.Arrive] is called

	LateOperations []string // that can be late; all if empty
}

// InjectNetwork puts the faults of a connection in place.
func (m *FaultMix) InjectNetwork(r *rand.Rand, into Injector, n Network) {
	if n.Cut > 0 {
		m.Inject(into, dynamotest.CutConnection(), Sometimes(r, n.Cut))
	}
	if n.Lost > 0 {
		m.Inject(into, dynamotest.LoseReply(), Sometimes(r, n.Lost))
	}
	if n.Late > 0 {
		fault, when := dynamotest.Late(), []dynamotest.When{Sometimes(r, n.Late)}
		if n.LateBy > 0 {
			fault = dynamotest.LateBy(1, n.LateBy)
		}
		if len(n.LateOperations) > 0 {
			when = append(when, dynamotest.On(n.LateOperations...))
		}
		m.Inject(into, fault, when...)
	}
}
