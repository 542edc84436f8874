package processtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/process/processtest"
)

// printer stands in for *testing.T, which an example does not have.
type printer struct{ testing.TB }

func (printer) Helper()        {}
func (printer) Cleanup(func()) {}
func (printer) Fatalf(format string, args ...any) {
	fmt.Println(strings.NewReplacer(" led", "\nled", " (if", "\n(if").Replace(fmt.Sprintf(format, args...)))
}

// A process from its first event to its end, with a timeout in between. A failure shows the whole
// step.
func ExampleGiven() {
	// A test passes its *testing.T.
	t := printer{}

	processtest.Given(t, watches).
		When(Tick{For: "anna"}).
		Then(Wound{}).
		ThenTimeouts(process.Timeout{Name: "alarm", After: time.Hour}).
		WhenTimeout("alarm", "anna").
		ThenCommands(Wake{"berta"}).
		ThenEnded()
	// Output:
	// When 2 (timeout "alarm"): the commands are not as expected (-want +got)
	// - processtest_test.Wake{Who: "berta"}
	// + processtest_test.Wake{Who: "anna"}
	// the step was:
	//   event 1: processtest_test.Rang{}
	//   command 1: processtest_test.Wake{Who: "anna"}
}

// An input that leads to no step fails the test, with the reason, unless the test expects it.
func ExampleScenario_ThenIgnored() {
	// A test passes its *testing.T.
	t := printer{}

	processtest.Given(t, watches).
		When(Tick{For: "anna"}).
		WhenTimeout("alarm", "anna").
		When(Tick{For: "anna"}).
		ThenIgnored().
		When(Tock{For: "anna"}).
		ThenCancelled("alarm")
	// Output:
	// When 4 (event "tock"): ignored: its process has ended: When 2 (timeout "alarm")
	// led to the state processtest_test.Watch{Woken: true}
	// (if this is expected, call ThenIgnored)
}
