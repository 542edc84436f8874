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
)

func (Wound) EventType() string { return "watch.wound" }
func (Rang) EventType() string  { return "watch.rang" }
func (Tick) EventType() string  { return "tick" }
func (Tock) EventType() string  { return "tock" }
func (Wound) Apply(*Watch)      {}
func (Rang) Apply(w *Watch)     { w.Woken = true }

type step = process.Step[Watch]

var errStuck = errors.New("stuck")

var watches = process.Define(aggregate.Define[Watch]("watch", Wound{}, Rang{}),
	process.On(func(e Tick, _ process.Input) string { return e.For }, func(Watch, Tick, process.Input) (step, error) {
		return step{Events: aggregate.Events[Watch]{Wound{}}, Timeouts: []process.Timeout{{Name: "alarm", After: time.Hour}}}, nil
	}).Starts(),
	process.On(func(e Tock, _ process.Input) string { return e.For }, func(_ Watch, e Tock, _ process.Input) (step, error) {
		if e.For == "stuck" {
			return step{}, errStuck
		}
		return step{Events: aggregate.Events[Watch]{Wound{}}, Cancel: []string{"alarm"}}, nil
	}),
	process.OnTimeout("alarm", func(_ Watch, in process.Input) (step, error) {
		return step{Events: aggregate.Events[Watch]{Rang{}}, Commands: []any{Wake{in.Process}}}, nil
	}),
).OverWhen(func(w Watch) bool { return w.Woken })

func TestScenariosThatHold(t *testing.T) {
	t.Parallel()
	processtest.Given(t, watches).
		When(Tick{"anna"}).ThenProcess("anna").
		Then(Wound{}).ThenCommands().ThenTimeouts(process.Timeout{Name: "alarm", After: time.Hour}).ThenCancelled().
		ThenState(Watch{}).
		WhenTimeout("alarm", "anna").
		Then(Rang{}).ThenCommands(Wake{"anna"}).ThenOver().
		When(Tick{"anna"}).ThenPassedOver()
	processtest.Given(t, watches, Wound{}).
		When(Tock{"anna"}).ThenCancelled("alarm").
		When(Tock{}).ThenPassedOver().ThenProcess("anna")
	processtest.Given(t, watches, Wound{}).
		When(Tock{"stuck"}).ThenError(errStuck).ThenProcess("stuck")
	processtest.Given(t, watches).When(Tock{"anna"}).ThenPassedOver()
}

func TestScenariosThatFailSayWhy(t *testing.T) {
	t.Parallel()
	for want, scenario := range map[string]func(t testing.TB){
		"expected the events processtest_test.Rang{}, got processtest_test.Wound{}": func(t testing.TB) {
			processtest.Given(t, watches).When(Tick{"anna"}).Then(Rang{})
		},
		"expected the commands processtest_test.Wake{Who:}, got none": func(t testing.TB) {
			processtest.Given(t, watches).When(Tick{"anna"}).ThenCommands(Wake{})
		},
		"expected the timeouts none, got process.Timeout{Name:alarm": func(t testing.TB) {
			processtest.Given(t, watches).When(Tick{"anna"}).ThenTimeouts()
		},
		"expected the cancelled timeouts stringalarm, got none": func(t testing.TB) {
			processtest.Given(t, watches).When(Tick{"anna"}).ThenCancelled("alarm")
		},
		`the timeout "alarm" is not set: [] are`: func(t testing.TB) {
			processtest.Given(t, watches).WhenTimeout("alarm", "anna")
		},
		"the last input was not handled: stuck":         func(t testing.TB) { processtest.Given(t, watches, Wound{}).When(Tock{"stuck"}) },
		"the last input was not handled: passed over":   func(t testing.TB) { processtest.Given(t, watches).When(Tock{"anna"}).Then() },
		"expected the error \"stuck\", got passed over": func(t testing.TB) { processtest.Given(t, watches).When(Tock{"anna"}).ThenError(errStuck) },
		"the process is not over":                       func(t testing.TB) { processtest.Given(t, watches, Wound{}).ThenOver() },
		"expected the state {Woken:true}, got":          func(t testing.TB) { processtest.Given(t, watches).ThenState(Watch{Woken: true}) },
		`the event "tock" belongs to process "berta", and what came before to "anna"`: func(t testing.TB) {
			processtest.Given(t, watches).When(Tick{"anna"}).When(Tock{"berta"}).Then(Wound{})
		},
		`the timeout "alarm" belongs to process "berta", and what came before to "anna"`: func(t testing.TB) {
			processtest.Given(t, watches).When(Tick{"anna"}).WhenTimeout("alarm", "berta").ThenOver()
		},
		`expected the process "berta", got "anna"`: func(t testing.TB) {
			processtest.Given(t, watches).When(Tick{"anna"}).ThenProcess("berta")
		},
		"nothing has come yet": func(t testing.TB) { processtest.Given(t, watches).Then() },
		"the event is nil":     func(t testing.TB) { processtest.Given(t, watches).When(nil) },
		"no reaction starts a process": func(t testing.TB) {
			processtest.Given(t, process.Define(aggregate.Define[Watch]("watch", Wound{}))).When(Tick{"anna"}).Then().ThenOver()
		},
	} {
		r := &recorder{TB: t}
		scenario(r)
		r.end()
		assert.Contains(t, r.said, want)
	}
}

// recorder is a test that goes on after Fatalf, as that of a scenario that is done does not.
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
