package processtest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/process/processtest"
)

type Watch struct{ Woken bool }

type (
	Wound struct{}
	Rang  struct{}
	Tick  struct{ For string }
	Tock  struct{ For string }
	Wake  struct{ Who string }
	Stop  struct{}

	unknown struct{}
)

func (Wound) EventType() string   { return "watch.wound" }
func (Rang) EventType() string    { return "watch.rang" }
func (Tick) EventType() string    { return "tick" }
func (Tock) EventType() string    { return "tock" }
func (unknown) EventType() string { return "unknown" }
func (unknown) Apply(*Watch)      {}
func (Wound) Apply(*Watch)        {}
func (Rang) Apply(w *Watch)       { w.Woken = true }

type step = process.Step[Watch]

var errStuck = errors.New("stuck")

var watches = process.Define(aggregate.Define[Watch]("watch", Wound{}, Rang{}),
	process.On(func(e Tick, _ process.Input) string { return e.For }, func(Watch, Tick, process.Input) (step, error) {
		return process.Record(Wound{}).SetTimeout("alarm", time.Hour), nil
	}).Starts(),
	process.On(func(e Tock, _ process.Input) string { return e.For }, func(_ Watch, e Tock, _ process.Input) (step, error) {
		switch e.For {
		case "stuck":
			return step{}, errStuck
		case "idle":
			return step{}, nil
		case "all":
			return process.Record(Wound{}).Send(Wake{"anna"}, Wake{"carla"}, Stop{}, Stop{}), nil
		}
		return process.Record(Wound{}).CancelTimeout("alarm"), nil
	}),
	process.OnTimeout("alarm", func(_ Watch, in process.Input) (step, error) {
		return process.Record(Rang{}).Send(Wake{in.Process}), nil
	}),
).EndsWhen(func(w Watch) bool { return w.Woken })

func TestScenariosThatHold(t *testing.T) {
	t.Parallel()
	processtest.Given(t, watches).
		When(Tick{"anna"}).ThenProcess("anna").
		Then(Wound{}).ThenCommands().ThenTimeouts(process.Timeout{Name: "alarm", After: time.Hour}).ThenCancelled().
		ThenState(Watch{}).
		WhenTimeout("alarm", "anna").
		Then(Rang{}).ThenCommands(Wake{"anna"}).ThenEnded().
		When(Tick{"anna"}).ThenIgnored()
	processtest.Given(t, watches, Wound{}).
		When(Tock{"anna"}).ThenCancelled("alarm").
		When(Tock{}).ThenIgnored().ThenProcess("anna")
	processtest.Given(t, watches, Wound{}).
		When(Tock{"stuck"}).ThenError(errStuck).ThenProcess("stuck")
	processtest.Given(t, watches).When(Tock{"anna"}).ThenIgnored()
}

func TestReactionsGetTheIDOfTheirProcess(t *testing.T) {
	t.Parallel()
	definition := process.Define(aggregate.Define[Watch]("watch", Wound{}),
		process.On(func(e Tick, in process.Input) string { return in.Process + e.For }, func(_ Watch, _ Tick, in process.Input) (step, error) {
			return process.Record(Wound{}).Send(Wake{in.Process}), nil
		}).Starts())
	processtest.Given(t, definition).
		When(Tick{"anna"}).ThenCommands(Wake{"anna"}).
		When(Tick{"anna"}, process.Input{Process: "berta", Timeout: "alarm"}).ThenCommands(Wake{"anna"})
}

func TestScenariosThatFailSayWhatToDo(t *testing.T) {
	t.Parallel()
	const woundStep = `the step was:
  event 1: processtest_test.Wound{}
  timeout 1: process.Timeout{Name: "alarm", After: 1h0m0s}`
	started := func(t testing.TB) *processtest.Scenario[Watch] {
		return processtest.Given(t, watches).When(Tick{"anna"})
	}
	for name, test := range map[string]struct {
		scenario func(t testing.TB)
		says     string
	}{
		"another event": {
			func(t testing.TB) { started(t).Then(Rang{}) },
			`When 1 (event "tick"): the events are not as expected (-want +got)
- processtest_test.Rang{}
+ processtest_test.Wound{}
` + woundStep,
		},
		"an event that is not defined": {
			func(t testing.TB) { started(t).Then(Wound{}, unknown{}) },
			`When 1 (event "tick"): the events are not as expected (-want +got)
  processtest_test.Wound{}
- processtest_test.unknown{}
expected event 2: unknown event type "unknown" of aggregate type "watch" (known: watch.wound, watch.rang): add the event's Go type to aggregate.Define, or an upcaster for its name, and keep it there for as long as such events are stored
` + woundStep,
		},
		"no command": {
			func(t testing.TB) { started(t).ThenCommands(Wake{}) },
			`When 1 (event "tick"): the commands are not as expected (-want +got)
- processtest_test.Wake{}
` + woundStep,
		},
		"commands that differ, move, and are too many": {
			func(t testing.TB) {
				processtest.Given(t, watches, Wound{}).When(Tock{"all"}).
					ThenCommands(Wake{"berta"}, Stop{}, Wake{"anna"})
			},
			`When 1 (event "tock"): the commands are not as expected (-want +got)
- processtest_test.Wake{Who: "berta"}
- processtest_test.Stop{}
  processtest_test.Wake{Who: "anna"}
+ processtest_test.Wake{Who: "carla"}
+ processtest_test.Stop{}
+ processtest_test.Stop{}
the step was:
  event 1: processtest_test.Wound{}
  command 1: processtest_test.Wake{Who: "anna"}
  command 2: processtest_test.Wake{Who: "carla"}
  command 3: processtest_test.Stop{}
  command 4: processtest_test.Stop{}`,
		},
		"a timeout that is not expected": {
			func(t testing.TB) { started(t).ThenTimeouts() },
			`When 1 (event "tick"): the timeouts are not as expected (-want +got)
+ process.Timeout{Name: "alarm", After: 1h0m0s}
` + woundStep,
		},
		"another time, and a timeout that was not set": {
			func(t testing.TB) {
				started(t).ThenTimeouts(process.Timeout{Name: "alarm", After: time.Minute}, process.Timeout{Name: "snooze", After: time.Minute})
			},
			`When 1 (event "tick"): the timeouts are not as expected (-want +got)
  process.Timeout{
    Name:  "alarm",
-   After: s"1m0s",
+   After: s"1h0m0s",
    At:    s"0001-01-01 00:00:00 +0000 UTC",
  }
- process.Timeout{Name: "snooze", After: 1m0s}
` + woundStep,
		},
		"nothing cancelled": {
			func(t testing.TB) { started(t).ThenCancelled("alarm") },
			`When 1 (event "tick"): the cancelled timeouts are not as expected (-want +got)
- "alarm"
` + woundStep,
		},
		"no reaction": {
			func(t testing.TB) { started(t).When(unknown{}).Then() },
			`When 2 (event "unknown"): ignored: there is no reaction to event type "unknown", only to "tick", "tock" (if this is expected, call ThenIgnored)`,
		},
		"no reaction, of a process that has ended": {
			func(t testing.TB) { processtest.Given(t, watches, Rang{}).When(unknown{}) },
			`When 1 (event "unknown"): ignored: there is no reaction to event type "unknown", only to "tick", "tock" (if this is expected, call ThenIgnored)`,
		},
		"no process, and no source": {
			func(t testing.TB) { processtest.Given(t, watches).When(Tick{}).Then(Wound{}) },
			`When 1 (event "tick"): ignored: its reaction returned no process for processtest_test.Tick{}, whose source is not known: if the reaction uses that, pass When a process.Input with its Source (if this is expected, call ThenIgnored)`,
		},
		"no process, with a source": {
			func(t testing.TB) {
				processtest.Given(t, watches).When(Tick{}, process.Input{Source: aggregate.ID{Type: "clock", Value: "c1"}})
			},
			`When 1 (event "tick"): ignored: its reaction returned no process for processtest_test.Tick{} of clock "c1" (if this is expected, call ThenIgnored)`,
		},
		"not begun": {
			func(t testing.TB) { processtest.Given(t, watches).When(Tock{"anna"}).Then() },
			`When 1 (event "tock"): ignored: its process has not begun, and its reaction is not marked with Starts (if this is expected, call ThenIgnored)`,
		},
		"nothing to do": {
			func(t testing.TB) { processtest.Given(t, watches, Wound{}).When(Tock{"idle"}) },
			`When 1 (event "tock"): ignored: its reaction returned an empty step (if this is expected, call ThenIgnored)`,
		},
		"over": {
			func(t testing.TB) { started(t).WhenTimeout("alarm", "anna").When(Tock{"anna"}).ThenCancelled("alarm") },
			`When 3 (event "tock"): ignored: its process has ended: When 2 (timeout "alarm") led to the state processtest_test.Watch{Woken: true} (if this is expected, call ThenIgnored)`,
		},
		"over from the start": {
			func(t testing.TB) { processtest.Given(t, watches, Rang{}).When(Tock{"anna"}) },
			`When 1 (event "tock"): ignored: its process has ended: Given led to the state processtest_test.Watch{Woken: true} (if this is expected, call ThenIgnored)`,
		},
		"another process": {
			func(t testing.TB) { started(t).When(Tock{"berta"}).Then(Wound{}) },
			`When 2 (event "tock"): its reaction returned process "berta" for processtest_test.Tock{For: "berta"}, and When 1 (event "tick") belongs to process "anna": correct the function that returns the process, or test each process by itself`,
		},
		"a timeout of another process": {
			func(t testing.TB) { started(t).WhenTimeout("alarm", "berta").ThenEnded() },
			`When 2 (timeout "alarm"): it is one of process "berta", and When 1 (event "tick") belongs to process "anna": pass "anna" to WhenTimeout`,
		},
		"not the process that was expected": {
			func(t testing.TB) { started(t).ThenProcess("berta") },
			`When 1 (event "tick"): expected the process "berta", got "anna", of When 1 (event "tick")`,
		},
		"no process that was expected": {
			func(t testing.TB) { processtest.Given(t, watches).When(unknown{}).ThenProcess("berta") },
			`When 1 (event "unknown"): expected the process "berta", got none: ignored: there is no reaction to event type "unknown", only to "tick", "tock"`,
		},
		"a timeout that was never set": {
			func(t testing.TB) { started(t).WhenTimeout("snooze", "anna") },
			`When 2 (timeout "snooze"): the timeout is not set: no step has set it; set are "alarm"`,
		},
		"a timeout of the past": {
			func(t testing.TB) { processtest.Given(t, watches, Wound{}).WhenTimeout("alarm", "anna") },
			`When 1 (timeout "alarm"): the timeout is not set: events that are passed to Given set none, so begin with the When whose step sets it, or pass WhenTimeout a process.Input with its OccurredAt; no timeout is set`,
		},
		"a timeout that was cancelled": {
			func(t testing.TB) { started(t).When(Tock{"anna"}).WhenTimeout("alarm", "anna") },
			`When 3 (timeout "alarm"): the timeout is not set any more: it was cancelled by When 2 (event "tock"); no timeout is set`,
		},
		"a timeout that has fired": {
			func(t testing.TB) { started(t).WhenTimeout("alarm", "anna").WhenTimeout("alarm", "anna") },
			`When 3 (timeout "alarm"): the timeout is not set any more: it has fired in When 2 (timeout "alarm"); no timeout is set`,
		},
		"an error": {
			func(t testing.TB) { processtest.Given(t, watches, Wound{}).When(Tock{"stuck"}) },
			`When 1 (event "tock"): stuck (if this is expected, call ThenError)`,
		},
		"another error": {
			func(t testing.TB) { processtest.Given(t, watches).When(Tock{"anna"}).ThenError(errStuck) },
			`When 1 (event "tock"): expected the error "stuck", got the error: ignored: its process has not begun, and its reaction is not marked with Starts`,
		},
		"nil as the error": {
			func(t testing.TB) { started(t).ThenError(nil) },
			`When 1 (event "tick"): ThenError(nil): pass the error that you expect, or omit ThenError if the input is handled`,
		},
		"no error": {
			func(t testing.TB) { started(t).ThenError(errStuck) },
			"When 1 (event \"tick\"): expected the error \"stuck\", but it was handled\n" + woundStep,
		},
		"not ignored": {
			func(t testing.TB) { started(t).ThenIgnored() },
			"When 1 (event \"tick\"): expected to be ignored, but it was handled\n" + woundStep,
		},
		"not over": {
			func(t testing.TB) { processtest.Given(t, watches, Wound{}).ThenEnded() },
			`Given: the process has not ended: EndsWhen returns false for its state processtest_test.Watch{}`,
		},
		"not over, as it has not begun": {
			func(t testing.TB) { processtest.Given(t, watches).ThenEnded() },
			`Given: the process has not ended: it has not begun`,
		},
		"another state": {
			func(t testing.TB) { processtest.Given(t, watches).ThenState(Watch{Woken: true}) },
			"Given: the state is not as expected (-want +got)\n  processtest_test.Watch{\n-   Woken: true,\n+   Woken: false,\n  }",
		},
		"nothing has come": {
			func(t testing.TB) { processtest.Given(t, watches).Then() },
			`Given: there was no input: call When before`,
		},
		"nil": {
			func(t testing.TB) { processtest.Given(t, watches).When(nil) },
			`Given: the event is nil`,
		},
		"a definition that is wrong": {
			func(t testing.TB) {
				processtest.Given(t, process.Define(aggregate.Define[Watch]("watch", Wound{}))).When(Tick{"anna"}).Then().ThenEnded()
			},
			`Given: definition of process "watch": no reaction starts a process: mark one with Starts`,
		},
	} {
		r := &recorder{TB: t}
		test.scenario(r)
		r.end()
		assert.Equal(t, test.says, r.said, name)
	}
}

// recorder is a test that continues after Fatalf, which a real test does not.
type recorder struct {
	testing.TB
	said    string
	cleanup []func()
}

func (r *recorder) Helper()                           {}
func (r *recorder) Cleanup(f func())                  { r.cleanup = append(r.cleanup, f) }
func (r *recorder) Fatalf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) }
func (r *recorder) Errorf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) }

func (r *recorder) end() {
	for _, f := range r.cleanup {
		f()
	}
}
