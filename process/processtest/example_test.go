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
// with what came instead.
func ExampleGiven() {
	t := printer{} // in a test, its *testing.T

	processtest.Given(t, watches).
		When(Tick{For: "anna"}).
		Then(Wound{}).
		ThenTimeouts(process.Timeout{Name: "alarm", After: time.Hour}).
		WhenTimeout("alarm", "anna").
		ThenCommands(Wake{"berta"}).
		ThenOver()
	// Output: expected the commands processtest_test.Wake{Who:berta}, got processtest_test.Wake{Who:anna}
}
