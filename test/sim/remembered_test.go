package sim

import (
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// tale is a correct saga: it has taken a step on each of the first three events of an aggregate, of
// which the last cancels its timeout, and on the first event of another aggregate. After that it
// has woken up twice.
type tale struct {
	*course
	t       *testing.T
	records []*journal.Record
	member  *member
}

func newTale(t *testing.T) *tale {
	t.Helper()
	id := aggregate.ID{Type: sagaType("g"), Value: "s0"}
	tale := &tale{
		t: t, member: &member{name: "a", group: "g"},
		course: &course{
			oracle: newOracle(newTrace(io.Discard)), plan: &plan{sagas: sagaPlan{nap: time.Second}}, group: "g", id: id,
			sources: map[stream][]string{{topic: "order", id: "a0"}: {"e1", "e2", "e3"}, {topic: "order", id: "a1"}: {"f1"}},
		},
	}
	for i, event := range []string{"e1", "e2", "e3", "f1"} {
		e := stepped{source{"order", "a0", uint64(i + 1)}, i + 1, tale.decided()}
		if event == "f1" {
			e.source = source{"order", "a1", 1}
		}
		for place, a := range e.acts() {
			tale.command(a, event, place)
		}
		tale.handles(e.stream(), e.Number)
		tale.remember(e, event)
	}
	timeout := "f1"
	for n := range mostNaps {
		timeout = tale.derived(timeout, "timeout nap")
		tale.command(act{source: source{"order", "a1", 1}, Steps: 4, Woken: n + 1}, timeout, 0)
		tale.remember(woken{n + 1, tale.decided()}, timeout)
	}
	return tale
}

func (t *tale) command(a act, cause string, place int) {
	t.arrive(a, sent{t.derived(cause, "command "+strconv.Itoa(place)), cause})
}

func (t *tale) arrive(a act, what sent) {
	t.oracle.command(t.member, commandKey{"g", t.id.Value, a}, what)
}

func (t *tale) handles(s stream, number uint64) {
	t.oracle.handles(stream{"g", s.topic, s.id}, number)
}

// remember records an event, one second after the one before.
func (t *tale) remember(e aggregate.Event[saga], cause string) {
	payload, err := json.Marshal(e)
	require.NoError(t.t, err)
	t.records = append(t.records, &journal.Record{
		EventType: e.EventType(), Payload: payload, Metadata: aggregate.Metadata{aggregate.CausationIDKey: cause},
		OccurredAt: t.decided(),
	})
}

// decided returns the time of the next event: one event per second.
func (t *tale) decided() time.Time { return time.Unix(int64(len(t.records)), 0) }

func TestTheOracleFindsNothingInASagaWhereAllIsWell(t *testing.T) {
	t.Parallel()
	tale := newTale(t)
	tale.follow(tale.records)
	assert.Empty(t, tale.oracle.findings)
}

func TestTheOracleFindsWhatIsWrongWithASaga(t *testing.T) {
	t.Parallel()
	first := act{source: source{"order", "a0", 1}, Steps: 1}
	for finds, spoil := range map[string]func(*tale){
		"takes a step on order/a0 #1, not on #2": func(t *tale) { t.records = slices.Insert(t.records, 1, t.records[0]) },
		"takes a step on order/a0 #2, not on #1": func(t *tale) { t.records = t.records[1:] },
		"takes step 2 on order/a1 #1 after 3 steps": func(t *tale) {
			t.records = t.records[:3]
			t.remember(stepped{source{"order", "a1", 1}, 2, t.decided()}, "f1")
		},
		"took no step on order/a1 #1":          func(t *tale) { t.records = t.records[:3] },
		"did not wake up again after order/a1": func(t *tale) { t.records = t.records[:5] },
		"for the time 3, having woken 2 times": func(t *tale) { t.remember(woken{3, t.decided()}, t.derived("f1", "timeout nap")) },
		// The timeout was cancelled.
		"with the timeout \"\" set":              func(t *tale) { t.records = slices.Insert(t.records, 3, t.records[4]) },
		"remembers woken after order/a1 #1 as c": func(t *tale) { t.records[4].Metadata[aggregate.CausationIDKey] = t.derived("e2", "timeout nap") },
		"wakes up 999ms after order/a1 #1": func(t *tale) {
			t.records = t.records[:4]
			t.remember(woken{1, t.decided().Add(-time.Millisecond)}, t.derived("f1", "timeout nap"))
		},
		"did not send the command": func(t *tale) { delete(t.oracle.commands, commandKey{"g", "s0", first}) },
		"has sent the command order/a0 #1, step 1, woken 0 times, command 0 under the id drawn": func(t *tale) {
			t.oracle.commands[commandKey{"g", "s0", first}] = arrived{sent: sent{"drawn", "e1"}}
		},
		"has sent 8 commands, and remembers 7": func(t *tale) { t.command(act{Steps: 9}, "e9", 0) },
		"before it was":                        func(t *tale) { t.arrive(first, sent{"drawn", "e1"}) },
		"and the one before it was not sent":   func(t *tale) { t.command(act{Steps: 9, Place: 1}, "e9", 1) },
		"but its event had been handled at 0s": func(t *tale) { t.oracle.handled = nil },
		"continues after its last step":        func(t *tale) { t.at.Over = true },
	} {
		t.Run(finds, func(t *testing.T) {
			t.Parallel()
			tale := newTale(t)
			spoil(tale)
			tale.follow(tale.records)
			require.NotEmpty(t, tale.oracle.findings)
			assert.Contains(t, tale.oracle.findings[0].Text, finds)
			assert.Equal(t, Effect, tale.oracle.findings[0].Kind)
		})
	}
}
