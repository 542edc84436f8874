package chaos

import "github.com/millrace-dev/millrace/aggregate"

// topic is the aggregate type.
const topic = "thing"

// state is small, since the package is about events.
type state struct{ Count int }

// happened is the only event type. Each event has a unique token.
type happened struct {
	Token  uint64
	Amount int
	Text   string
}

func (happened) EventType() string { return "chaos.happened.v1" }
func (happened) Apply(s *state)    { s.Count++ }

var things = aggregate.Define[state](topic, happened{})

// history is the content of the journal: the events of each aggregate by the value of its id,
// number 1 first.
type history map[string][]written

type written struct {
	Token  uint64
	Amount int
}

func (h history) events() (n int) {
	for _, events := range h {
		n += len(events)
	}
	return n
}
