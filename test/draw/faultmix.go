package draw

import (
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/dynamotest"
)

// FaultMix is a set of active faults. The zero value is empty.
type FaultMix struct{ injections []*dynamotest.Injection }

// Injector is a DB or a Proxy of dynamotest.
type Injector interface {
	Inject(fault dynamotest.Fault, when ...dynamotest.When) *dynamotest.Injection
}

// Inject activates a fault.
func (m *FaultMix) Inject(into Injector, fault dynamotest.Fault, when ...dynamotest.When) *dynamotest.Injection {
	i := into.Inject(fault, when...)
	m.injections = append(m.injections, i)
	return i
}

// Arrive lets the late requests arrive now.
func (m *FaultMix) Arrive() {
	for _, i := range m.injections {
		i.Arrive()
	}
}

// End removes the faults, and lets the late requests arrive.
func (m *FaultMix) End() {
	for _, i := range m.injections {
		i.Remove()
	}
	m.Arrive()
}

// Network says how often the connection of a process fails.
type Network struct {
	Cut  float64 // probability that a request does not arrive
	Lost float64 // probability that a reply does not arrive
	// Probability that a request arrives after its caller has cancelled it.
	Late float64
	// Maximum delay. If 0, requests arrive when [FaultMix.Arrive] is called.
	LateBy time.Duration

	LateOperations []string // operations that can be late; all if empty
}

// InjectNetwork activates the faults of a connection.
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
