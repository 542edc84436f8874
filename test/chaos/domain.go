package chaos

import "github.com/millrace-dev/millrace/aggregate"

// topic is the aggregate type.
const topic = "thing"

// state is as small as can be: the package is about events.
type state struct{ Count int }

// happened is the one event type. No two events have the same token, in whichever commit they are.
type happened struct {
	Token  uint64
	Amount int
	Text   string
}

func (happened) EventType() string { return "chaos.happened.v1" }
func (happened) Apply(s *state)    { s.Count++ }

var things = aggregate.Define[state](topic, happened{})

// history is what the journal has: by id value the events of each aggregate, number 1 first.
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
