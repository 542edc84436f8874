package processtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/process/processtest"
)

// Rung is the event of a watch with an alarm for each of several people.
type Rung struct {
	Who string
	At  time.Time
}

func (Rung) EventType() string { return "watch.rung" }
func (Rung) Apply(*Watch)      {}

var alarms = process.Define(aggregate.Define[Watch]("watch", Wound{}, Rung{}),
	process.On(func(Tick, process.Input) string { return "w1" }, func(_ Watch, e Tick, in process.Input) (step, error) {
		return process.Record(Wound{}).SetTimeout("alarm/"+e.For, time.Hour).SetTimeoutAt("end", in.OccurredAt.Add(24*time.Hour)), nil
	}).Starts(),
	process.On(func(Tock, process.Input) string { return "w1" }, func(_ Watch, e Tock, _ process.Input) (step, error) {
		return process.Record(Wound{}).CancelTimeout("alarm/" + e.For), nil
	}),
	process.OnTimeout("alarm/", func(_ Watch, in process.Input) (step, error) {
		return process.Record(Rung{in.TimeoutKey, in.OccurredAt}).SetTimeout("alarm/"+in.TimeoutKey, time.Minute), nil
	}),
	process.OnTimeout("end", func(_ Watch, in process.Input) (step, error) {
		return process.Record(Rung{"all", in.OccurredAt}), nil
	}),
)

func TestATimeoutFiresAtTheTimeForWhichItWasSet(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	processtest.Given(t, alarms).
		When(Tick{"anna"}, process.Input{OccurredAt: noon}).
		When(Tick{"berta"}, process.Input{OccurredAt: noon.Add(time.Minute)}).
		ThenTimeouts(process.Timeout{Name: "alarm/berta", After: time.Hour}, process.Timeout{Name: "end", At: noon.Add(24*time.Hour + time.Minute)}).
		WhenTimeout("alarm/anna", "w1").Then(Rung{"anna", noon.Add(time.Hour)}).
		WhenTimeout("alarm/anna", "w1").Then(Rung{"anna", noon.Add(time.Hour + time.Minute)}).
		WhenTimeout("alarm/berta", "w1").Then(Rung{"berta", noon.Add(time.Hour + time.Minute)}).
		When(Tock{"berta"}).ThenCancelled("alarm/berta").
		WhenTimeout("end", "w1").Then(Rung{"all", noon.Add(24*time.Hour + time.Minute)})
}

func TestATimeoutFromBeforeTheScenarioFiresAtAGivenTime(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	processtest.Given(t, alarms, Wound{}).
		WhenTimeout("alarm/anna", "w1", process.Input{OccurredAt: noon}).Then(Rung{"anna", noon}).
		WhenTimeout("alarm/anna", "w1").Then(Rung{"anna", noon.Add(time.Minute)}).ThenProcess("w1")
}

func TestATimeoutWithAnotherKeyIsNotSet(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	processtest.Given(r, alarms).When(Tick{"anna"}).WhenTimeout("alarm/berta", "w1")
	assert.Equal(t, `When 2 (timeout "alarm/berta"): the timeout is not set: no step has set it; set are "alarm/anna", "end"`, r.said)
}
