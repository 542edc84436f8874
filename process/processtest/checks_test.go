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

func TestReactionsAndWhatTheyReturnAreChecked(t *testing.T) {
	t.Parallel()

	const advice = ": take times and ids from the state, the event or the input, such as in.OccurredAt and in.ID"
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
			when + "the reaction is not pure, called twice on the same state and input it returns 1 command, then 2" + advice,
		},
		"a state that is changed": {
			func(l Log) (logStep, error) { l.Notes[0] = "changed"; return process.Record(Noted{"a"}), nil },
			when + `the reaction changed the state it was given, at Notes[0] from "given" to "changed": copy maps, slices and what pointers lead to before changing them`,
		},
		"nil and empty": {
			func(l Log) (logStep, error) {
				if l.Seen == nil {
					return logStep{}, errStuck
				}
				return process.Record(Noted{"a"}), nil
			},
			when + `on the same state from a snapshot the reaction returns another result, it returns the error "<nil>", then "stuck": treat nil and empty slices and maps alike`,
		},
		"an event that loses a field": {
			func(Log) (logStep, error) { return process.Record[Log](Noted{"a"}, Tagged{1}), nil },
			when + `event 2, log.tagged, does not survive its codec: Tag was a int and came back as a json.Number`,
		},
		"a state that loses a field": {
			func(Log) (logStep, error) { return process.Record(Noted{"hide"}), nil },
			when + `the state does not survive its codec, so a snapshot would lose a part of it: Hidden was 1 and came back as 0`,
		},
		"a command that loses fields": {
			noted(Wake{"anna"}, Call{"anna", 1, 2}),
			when + `command 2, processtest_test.Call{Who: "anna", code: 1, count: 2}, does not survive cqrs.JSONMarshaler: code was 1 and came back as 0, count was 2 and came back as 0: its fields must be exported, and of types that the marshaler keeps; if process.Config has another marshaler, set it with Marshaler`,
		},
		"a pointer to a command that loses a field": {
			noted(&Call{code: 1}),
			when + `command 1, &processtest_test.Call{code: 1}, does not survive cqrs.JSONMarshaler: code was 1 and came back as 0: its fields must be exported, and of types that the marshaler keeps; if process.Config has another marshaler, set it with Marshaler`,
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
			`^When 1 \(event "tick"\): the reaction is not pure, called twice on the same state and input it returns processtest_test.Wake{Who: "\d+"}, then processtest_test.Wake{Who: "\d+"} \(command 2 differs at Who\): take times and ids from the state, the event or the input, such as in.OccurredAt and in.ID$`,
		},
		"an event": {
			func(Log) (logStep, error) { return process.Record(Noted{next()}), nil },
			`processtest_test.Noted{Text: "\d+"}, then processtest_test.Noted{Text: "\d+"} \(event 1 differs at Text\)`,
		},
		"a time": {
			func(Log) (logStep, error) {
				at := time.Unix(calls.Add(1), 0).UTC()
				return process.Record(Noted{"a"}).SetTimeoutAt("later", at), nil
			},
			`\(timeout 1 differs at At\)`,
		},
		"an error": {
			func(Log) (logStep, error) { return logStep{}, fmt.Errorf("attempt %s", next()) },
			`it returns the error "attempt \d+", then "attempt \d+": take times`,
		},
	} {
		r := &recorder{TB: t}
		processtest.Given(r, logs(test.react)).When(Tick{"anna"})
		r.end()
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
	assert.Equal(t, `When 1 (event "tick"): command 1, &processtest_test.opaque{text: "a"}, does not survive cqrs.JSONMarshaler: text was "a" and came back as "": its fields must be exported, and of types that the marshaler keeps`, r.said)
}

// opaque is a Protocol Buffers message that JSON does not keep.
type opaque struct{ text string }

func (*opaque) ProtoMessage() {}
