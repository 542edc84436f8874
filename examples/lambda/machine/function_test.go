package machine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/lambda/machine"
)

func invoke(t *testing.T, f *machine.Function, payload string) (string, error) {
	t.Helper()
	var response strings.Builder
	err := f.Invoke(t.Context(), []byte(payload), &response)
	return response.String(), err
}

// gate is a server whose replies wait until it is opened.
type gate struct {
	url     string
	entered chan struct{} // receives for each request
	opened  chan struct{}
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{entered: make(chan struct{}, 10), opened: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		g.entered <- struct{}{}
		select {
		case <-g.opened:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

func (g *gate) payload() string { return fmt.Sprintf("%q", g.url) }

// await waits until a process is at the gate.
func (g *gate) await(t *testing.T) {
	t.Helper()
	select {
	case <-g.entered:
	case <-time.After(patience):
		require.Fail(t, "no process is at the gate")
	}
}

// begin begins an invocation of the function "wait", and returns when it waits.
func (g *gate) begin(t *testing.T, f *machine.Function) (pid func() (string, error)) {
	t.Helper()
	type result struct {
		pid string
		err error
	}
	ended := make(chan result, 1)
	go func() {
		pid, err := invoke(t, f, g.payload())
		ended <- result{pid, err}
	}()
	g.await(t)
	return func() (string, error) {
		r := <-ended
		return r.pid, r.err
	}
}

func TestAProcessServesOneInvocationAfterTheOther(t *testing.T) {
	t.Parallel()
	f := function(t, machine.Config{Name: "pid", Concurrency: 2})
	first, err := invoke(t, f, `{}`)
	require.NoError(t, err)
	second, err := invoke(t, f, `{}`)
	require.NoError(t, err)
	assert.Equal(t, first, second)
	assert.Len(t, f.Stats().Starts, 1)
}

func TestConcurrentInvocationsHaveProcessesOfTheirOwn(t *testing.T) {
	t.Parallel()
	f, g := function(t, machine.Config{Name: "wait", Concurrency: 2}), newGate(t)
	one := g.begin(t, f)
	two := g.begin(t, f)
	_, err := invoke(t, f, g.payload())
	require.ErrorIs(t, err, machine.ErrThrottled)
	close(g.opened)
	first, err := one()
	require.NoError(t, err)
	second, err := two()
	require.NoError(t, err)
	assert.NotEqual(t, first, second)
	assert.Equal(t, 1, f.Stats().Throttles)
}

// A stopped process runs no instruction. Only Linux shows the states of processes as files.
func TestAProcessIsFrozenBetweenInvocations(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("left to Linux, which shows the state of a process in /proc")
	}
	f, g := function(t, machine.Config{Name: "wait"}), newGate(t)
	close(g.opened)
	pid, err := invoke(t, f, g.payload())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return state(t, pid) == "T" }, patience, time.Millisecond, "it must be stopped")

	open := newGate(t)
	end := open.begin(t, f) // the process has sent a request, so it runs
	close(open.opened)
	again, err := end()
	require.NoError(t, err)
	assert.Equal(t, pid, again)
	require.Eventually(t, func() bool { return state(t, pid) == "T" }, patience, time.Millisecond, "it must be stopped again")
}

func state(t *testing.T, pid string) string {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(stat), ") ")
	return after[:1]
}

func TestAProcessIsKilledAtTheTimeout(t *testing.T) {
	t.Parallel()
	f := function(t, machine.Config{Name: "hang", Timeout: 50 * time.Millisecond})
	for range 2 {
		_, err := invoke(t, f, `{}`)
		var failed *machine.Error
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, machine.TimedOut, failed.Type)
	}
	assert.Len(t, f.Stats().Starts, 2, "a process that was killed must be replaced")
	assert.Equal(t, map[string]int{machine.TimedOut: 2}, f.Stats().Errors)
}

func TestTheEndOfTheCallerKillsTheProcess(t *testing.T) {
	t.Parallel()
	f, g := function(t, machine.Config{Name: "wait"}), newGate(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Invoke(ctx, []byte(g.payload()), io.Discard) }()
	g.await(t)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestCloseEndsRunningInvocations(t *testing.T) {
	t.Parallel()
	f, g := function(t, machine.Config{Name: "wait"}), newGate(t)
	end := g.begin(t, f)
	f.Close()
	_, err := end()
	require.ErrorIs(t, err, context.Canceled)
	_, err = invoke(t, f, g.payload())
	require.ErrorIs(t, err, machine.ErrThrottled)
}

func TestErrorsOfFunctions(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]machine.Error{
		"fail":       {Type: "errorString", Message: "out of order"},
		"crash":      {Type: machine.Exited, Message: "the process has ended: exit status 3"},
		"nowhere":    {Type: machine.Exited, Message: "the process has ended: exit status 4"},
		"init error": {Type: "Setting", Message: "is missing"},
		"torn":       {Type: "errorString", Message: "torn"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := invoke(t, function(t, machine.Config{Name: name}), `{}`)
			var failed *machine.Error
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, want, *failed)
		})
	}
}

func TestAFailureKeepsTheProcess(t *testing.T) {
	t.Parallel()
	f := function(t, machine.Config{Name: "fail"})
	for range 2 {
		_, err := invoke(t, f, `{}`)
		require.Error(t, err)
	}
	assert.Len(t, f.Stats().Starts, 1)
}

func TestAnInitialisationHasATimeout(t *testing.T) {
	t.Parallel()
	f, err := machine.NewFunction(machine.Config{Name: "init hang", InitTimeout: 50 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(f.Close)
	_, err = invoke(t, f, `{}`)
	var failed *machine.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, machine.Error{Type: machine.TimedOut, Message: "the initialisation took more than 50ms"}, *failed)
}

func TestKillEndsARunningInvocation(t *testing.T) {
	t.Parallel()
	f, g := function(t, machine.Config{Name: "wait"}), newGate(t)
	f.Kill(func(int) int { return 0 })
	assert.Zero(t, f.Stats().Kills, "none runs")
	end := g.begin(t, f)
	f.Kill(func(int) int { return 0 })
	_, err := end()
	require.Equal(t, &machine.Error{Type: machine.Exited, Message: "the process has ended: signal: killed"}, err)
	assert.Equal(t, 1, f.Stats().Kills)
}

func TestAProcessHasTheEnvironmentOfItsFunctionAndADeadline(t *testing.T) {
	t.Parallel()
	f := function(t, machine.Config{Name: "environment", Env: []string{"SETTING=on"}, Timeout: 5 * time.Minute})
	reply, err := invoke(t, f, `{}`)
	require.NoError(t, err)
	var got string
	require.NoError(t, json.Unmarshal([]byte(reply), &got))
	assert.Equal(t, "on  5m0s", got, "HOME of this process must not be seen")
}

func TestAScheduleInvokesAgainAndAgain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	payloads := make(chan []byte)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		machine.Schedule{Name: "rule", Every: time.Millisecond, Invoke: func(_ context.Context, payload []byte, _ io.Writer) error {
			select {
			case payloads <- payload:
			case <-ctx.Done():
			}
			return nil
		}}.Run(ctx)
	}()
	for range 2 {
		var event map[string]any
		require.NoError(t, json.Unmarshal(<-payloads, &event))
		assert.Equal(t, "aws.events", event["source"])
		assert.Equal(t, "Scheduled Event", event["detail-type"])
	}
	cancel()
	<-ended
}
