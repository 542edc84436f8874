package processtest_test

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/process/processtest"
)

// Log is a state with a slice, a slice that snapshots do not keep if it is empty, and a field that
// they never keep.
type Log struct {
	Notes  []string
	Seen   []string `json:",omitempty"`
	Hidden int      `json:"-"`
}

type (
	Noted  struct{ Text string }
	Tagged struct{ Tag any }

	// Call is a command with fields that JSON does not keep.
	Call struct {
		Who         string
		code, count int
	}
)

func (Noted) EventType() string  { return "log.noted" }
func (Tagged) EventType() string { return "log.tagged" }
func (Tagged) Apply(*Log)        {}
func (e Noted) Apply(l *Log) {
	l.Notes = append(l.Notes, e.Text)
	if e.Text == "empty" {
		l.Seen = []string{}
	}
	if e.Text == "hide" {
		l.Hidden++
	}
}

var calls atomic.Int64

// next returns another text at each call, as a clock does.
func next() string { return strconv.FormatInt(calls.Add(1), 10) }

type logStep = process.Step[Log]

// logs returns a definition with a reaction to Tick.
func logs(react func(l Log) (logStep, error)) process.Definition[Log] {
	return process.Define(aggregate.Define[Log]("log", Noted{}, Tagged{}),
		process.On(func(e Tick, _ process.Input) string { return e.For },
			func(l Log, _ Tick, _ process.Input) (logStep, error) { return react(l) }).Starts(),
		process.OnTimeout("later", func(Log, process.Input) (logStep, error) { return logStep{}, nil }))
}

func noted(commands ...any) func(Log) (logStep, error) {
	return func(Log) (logStep, error) { return process.Record(Noted{"a"}).Send(commands...), nil }
}

const impure = "the reaction is not pure, it returns two results on the same state: take times and ids from the state, the event or the input, such as in.OccurredAt and in.ID (-first +second)"

func TestReactionsAndWhatTheyReturnAreChecked(t *testing.T) {
	t.Parallel()

	const when = `When 1 (event "tick"): `
	for name, test := range map[string]struct {
		react func(Log) (logStep, error)
		says  string
	}{
		"another number of commands": {
			func() func(Log) (logStep, error) {
				var all []any
				return func(Log) (logStep, error) {
					all = append(all, Stop{})
					return process.Record(Noted{"a"}).Send(all...), nil
				}
			}(),
			when + impure + "\n  processtest_test.Noted{Text: \"a\"}\n  processtest_test.Stop{}\n+ processtest_test.Stop{}",
		},
		"a state that is changed": {
			func(l Log) (logStep, error) { l.Notes[0] = "changed"; return process.Record(Noted{"a"}), nil },
			when + `the reaction changed the state it was given: copy maps, slices and what pointers lead to before changing them (-before +after)
  processtest_test.Log{
    Notes: []string{
-     "given",
+     "changed",
      "empty",
    },
    Seen:   {},
    Hidden: 0,
  }`,
		},
		"nil and empty": {
			func(l Log) (logStep, error) {
				if l.Seen == nil {
					return logStep{}, errStuck
				}
				return process.Record(Noted{"a"}), nil
			},
			when + `on the same state from a snapshot the reaction returns another result: treat nil and empty slices and maps alike (-without +with the snapshot)
- the error "<nil>"
+ the error "stuck"`,
		},
		"an event that loses a field": {
			func(Log) (logStep, error) { return process.Record[Log](Noted{"a"}, Tagged{1}), nil },
			when + `event 2, log.tagged, does not survive its codec (-before +after)
  processtest_test.Tagged{
-   Tag: int(1),
+   Tag: s"1",
  }
- type of Tag: int
+ type of Tag: json.Number`,
		},
		"a state that loses a field": {
			func(Log) (logStep, error) { return process.Record(Noted{"hide"}), nil },
			when + `the state does not survive its codec, so a snapshot would lose a part of it (-before +after)
  processtest_test.Log{
    Notes:  {"given", "empty", "hide"},
    Seen:   {},
-   Hidden: 1,
+   Hidden: 0,
  }`,
		},
		"a command that loses fields": {
			noted(Wake{"anna"}, Call{"anna", 1, 2}),
			when + `command 2 does not survive cqrs.JSONMarshaler: its fields must be exported, and of types that the marshaler keeps; if process.Config has another marshaler, set it with Marshaler (-before +after)
  processtest_test.Call{
    Who:   "anna",
-   code:  1,
+   code:  0,
-   count: 2,
+   count: 0,
  }`,
		},
		"a pointer to a command that loses a field": {
			noted(&Call{code: 1}),
			when + `command 1 does not survive cqrs.JSONMarshaler: its fields must be exported, and of types that the marshaler keeps; if process.Config has another marshaler, set it with Marshaler (-before +after)
  &processtest_test.Call{
    Who:   "",
-   code:  1,
+   code:  0,
    count: 0,
  }`,
		},
		"a command that cannot be sent": {
			noted(func() {}),
			when + `command 1, a func(), cannot be sent by cqrs.JSONMarshaler and received: json: unsupported type: func(); if process.Config has another marshaler, set it with Marshaler`,
		},
		"a command that is nil": {
			noted(nil),
			when + `invalid step: command 1 is nil (if this is expected, call ThenError)`,
		},
		"a timeout without a reaction": {
			func(Log) (logStep, error) { return process.Record(Noted{"a"}).SetTimeout("lunch", time.Hour), nil },
			when + `process "log" has no reaction to the timeout "lunch": add one with OnTimeout`,
		},
	} {
		r := &recorder{TB: t}
		processtest.Given(r, logs(test.react), Noted{"given"}, Noted{"empty"}).When(Tick{"anna"})
		r.end()
		assert.Equal(t, test.says, r.said, name)
	}
}

func TestReactionsMustBePure(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		react func(Log) (logStep, error)
		says  string
	}{
		"a command": {
			func(Log) (logStep, error) { return process.Record(Noted{"a"}).Send(Stop{}, Wake{next()}), nil },
			`  processtest_test.Stop{}\n- processtest_test.Wake{Who: "\d+"}\n\+ processtest_test.Wake{Who: "\d+"}$`,
		},
		"an event": {
			func(Log) (logStep, error) { return process.Record(Noted{next()}), nil },
			`- processtest_test.Noted{Text: "\d+"}\n\+ processtest_test.Noted{Text: "\d+"}$`,
		},
		"a time": {
			func(Log) (logStep, error) {
				at := time.Unix(calls.Add(1), 0).UTC()
				return process.Record(Noted{"a"}).SetTimeoutAt("later", at), nil
			},
			`-   At:    s"[^"]+",\n\+   At:    s"[^"]+",`,
		},
		"an error": {
			func(Log) (logStep, error) { return logStep{}, fmt.Errorf("attempt %s", next()) },
			`- the error "attempt \d+"\n\+ the error "attempt \d+"$`,
		},
	} {
		r := &recorder{TB: t}
		processtest.Given(r, logs(test.react)).When(Tick{"anna"})
		r.end()
		assert.Contains(t, r.said, `When 1 (event "tick"): `+impure+"\n", name)
		assert.Regexp(t, test.says, r.said, name)
	}
}

func TestTheKeyMustBePure(t *testing.T) {
	t.Parallel()
	n := 0
	definition := process.Define(aggregate.Define[Watch]("watch", Wound{}),
		process.On(func(Tick, process.Input) string { n++; return strconv.Itoa(n) },
			func(Watch, Tick, process.Input) (step, error) { return process.Record(Wound{}), nil }).Starts())
	r := &recorder{TB: t}
	processtest.Given(r, definition).When(Tick{"anna"})
	r.end()
	assert.Equal(t, `When 1 (event "tick"): its reaction returned process "1" for processtest_test.Tick{For: "anna"}, then process "2": the function that returns the process must be pure`, r.said)
}

// keepsAll is a marshaler that loses nothing, because its messages are not bytes.
type keepsAll struct {
	cqrs.JSONMarshaler
	last *Call
}

func (k keepsAll) Marshal(v any) (*message.Message, error) {
	*k.last = v.(Call)
	return k.JSONMarshaler.Marshal(v)
}

func (k keepsAll) Unmarshal(_ *message.Message, v any) error {
	*v.(*Call) = *k.last
	return nil
}

func TestCommandsAreCheckedWithTheMarshalerOfTheManager(t *testing.T) {
	t.Parallel()

	processtest.Given(t, logs(noted(Call{"anna", 1, 2}))).
		Marshaler(keepsAll{last: new(Call)}).
		When(Tick{"anna"}).ThenCommands(Call{"anna", 1, 2})

	text := structpb.NewStringValue("a")
	processtest.Given(t, logs(noted(text))).
		Marshaler(cqrs.ProtoMarshaler{}).
		When(Tick{"anna"}).ThenCommands(structpb.NewStringValue("a"))
	processtest.Given(t, logs(noted(&opaque{"a"}))).When(Tick{"anna"}).ThenCommands(&opaque{"a"})

	r := &recorder{TB: t}
	processtest.Given(r, logs(noted(&opaque{"a"}))).Marshaler(cqrs.JSONMarshaler{}).When(Tick{"anna"})
	r.end()
	assert.Equal(t, `When 1 (event "tick"): command 1 does not survive cqrs.JSONMarshaler: its fields must be exported, and of types that the marshaler keeps (-before +after)
  &processtest_test.opaque{
-   text: "a",
+   text: "",
  }`, r.said)
}

// opaque is a Protocol Buffers message that JSON does not keep.
type opaque struct{ text string }

func (*opaque) ProtoMessage() {}
