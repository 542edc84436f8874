package processtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/process/processtest"
)

// printer takes the place of *testing.T, which an example does not have.
type printer struct{ testing.TB }

func (printer) Helper()                           {}
func (printer) Cleanup(func())                    {}
func (printer) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// A process from its first event to its end, with a timeout in between. What does not hold is told
// with all of the step.
func ExampleGiven() {
	t := printer{} // in a test, its *testing.T

	processtest.Given(t, watches).
		When(Tick{For: "anna"}).
		Then(Wound{}).
		ThenTimeouts(process.Timeout{Name: "alarm", After: time.Hour}).
		WhenTimeout("alarm", "anna").
		ThenCommands(Wake{"berta"}).
		ThenOver()
	// Output:
	// When 2 (timeout "alarm"): the commands are not as expected
	// - command 1, processtest_test.Wake, differs:
	//     Who: expected "berta", got "anna"
	// the step was:
	//   event 1: processtest_test.Rang{}
	//   command 1: processtest_test.Wake{Who: "anna"}
}

// An input that leads to no step fails the test, with the reason, unless the test expects it.
func ExampleScenario_ThenPassedOver() {
	t := printer{} // in a test, its *testing.T

	processtest.Given(t, watches).
		When(Tick{For: "anna"}).
		WhenTimeout("alarm", "anna").
		When(Tick{For: "anna"}).
		ThenPassedOver().
		When(Tock{For: "anna"}).
		ThenCancelled("alarm")
	// Output:
	// When 4 (event "tock"): passed over: its process is over since When 2 (timeout "alarm"), which led to the state processtest_test.Watch{Woken: true} (if this is expected, say so with ThenPassedOver)
}
