package processtest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/process/processtest"
)

// Clock is the aggregate whose events the watches react to.
type Clock struct{ Ticks int }

func (Tick) Apply(c *Clock) { c.Ticks++ }
func (Tock) Apply(*Clock)   {}

var clocks = aggregate.Define[Clock]("clock", Tick{}, Tock{}).WithUpcasters(
	aggregate.Upcast("tick.v0", func(old struct{ Name string }) Tick { return Tick{For: old.Name} }),
	aggregate.Split("both.v0", func(old struct{ First, Second string }) (aggregate.Events[Clock], error) {
		return aggregate.Events[Clock]{Tick{old.First}, Tock{old.Second}}, nil
	}),
	aggregate.Drop("none.v0"),
)

func TestStoredEventsComeAsThoseOfToday(t *testing.T) {
	t.Parallel()

	processtest.Given(t, watches).
		WhenStored(clocks, "tick.v0", `{"Name":"anna"}`).
		ThenProcess("anna").Then(Wound{}).
		WhenStored(clocks, "tock", `{"For":"anna"}`).
		ThenCancelled("alarm")
	processtest.Given(t, watches).
		WhenStored(clocks, "both.v0", `{"First":"anna","Second":"anna"}`).
		ThenProcess("anna").ThenCancelled("alarm")
	processtest.Given(t, watches).
		WhenStored(clocks, "both.v0", `{"Second":"anna"}`).ThenIgnored().
		WhenStored(clocks, "none.v0", `{}`).ThenIgnored()
	processtest.Given(t, watches, Wound{}).
		WhenStored(clocks, "both.v0", `{"Second":"anna"}`).ThenCancelled("alarm")

	bySource := process.Define(aggregate.Define[Watch]("watch", Wound{}),
		process.On(func(_ Tick, in process.Input) string { return in.Source.Type + " " + in.Source.Value },
			func(Watch, Tick, process.Input) (step, error) { return process.Record(Wound{}), nil }).Starts())
	processtest.Given(t, bySource).
		WhenStored(clocks, "tick.v0", `{}`, process.Input{Source: aggregate.ID{Value: "c1"}}).
		ThenProcess("clock c1")
}

func TestStoredEventsThatLeadToNoStepSayWhy(t *testing.T) {
	t.Parallel()

	const expect = " (if this is expected, call ThenIgnored)"
	for name, test := range map[string]struct {
		scenario func(s *processtest.Scenario[Watch])
		says     string
	}{
		"no event of today": {
			func(s *processtest.Scenario[Watch]) { s.WhenStored(clocks, "none.v0", `{}`) },
			`When 1 (event "none.v0"): ignored: its upcasters return no event` + expect,
		},
		"no process": {
			func(s *processtest.Scenario[Watch]) { s.WhenStored(clocks, "tick.v0", `{}`) },
			`When 1 (event "tick"): ignored: its reaction returned no process for the stored "tick.v0" {}, whose source is not known: if the reaction uses that, pass When a process.Input with its Source` + expect,
		},
		"the last of several": {
			func(s *processtest.Scenario[Watch]) {
				s.WhenStored(clocks, "both.v0", `{"Second":"anna"}`)
			},
			`When 2 (event "tock"): ignored: its process has not begun, and its reaction is not marked with Starts` + expect,
		},
		"no definition": {
			func(s *processtest.Scenario[Watch]) { s.WhenStored(nil, "tick", `{}`) },
			`When 1 (event "tick"): definition 1 is nil (if this is expected, call ThenError)`,
		},
		"a marshaler that comes too late": {
			func(s *processtest.Scenario[Watch]) { s.When(Tick{"anna"}).Marshaler(nil) },
			`When 1 (event "tick"): Marshaler comes too late: put it before the first When`,
		},
	} {
		r := &recorder{TB: t}
		test.scenario(processtest.Given(r, watches))
		r.end()
		assert.Equal(t, test.says, r.said, name)
	}

	r := &recorder{TB: t}
	processtest.Given(r, watches).WhenStored(clocks, "tick.v0", `{"Name":7}`)
	r.end()
	assert.Contains(t, r.said, `When 1 (event "tick.v0"): `)
	assert.Contains(t, r.said, "cannot unmarshal number")
}
