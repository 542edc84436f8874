package command_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

type (
	saga   struct{}
	begun  struct{}
	placed struct{}
	charge struct{ Order string }
)

func (begun) EventType() string  { return "saga.begun" }
func (begun) Apply(*saga)        {}
func (placed) EventType() string { return "order.placed" }

// offline is a broker that sends nothing.
type offline struct{}

func (offline) Publish(string, ...*message.Message) error { return errors.New("the broker is offline") }
func (offline) Close() error                              { return nil }

// setupProcesses is setupTables with a saga for order o1. A timeout of an hour is set, and its
// command cannot be sent.
func setupProcesses(t *testing.T) (*shell, *process.Manager[saga]) {
	t.Helper()
	s := setupTables(t)
	s.stopClock()
	require.NoError(t, process.CreateTable(t.Context(), s.client, ""))
	m, err := process.New(s.open(t, journal.Config{}), s.client, process.Define(aggregate.Define[saga]("saga", begun{}),
		process.On(func(_ placed, in process.Input) string { return in.Source.Value }, func(saga, placed, process.Input) (process.Step[saga], error) {
			return process.Record(begun{}).Send(charge{"o1"}).SetTimeout("answers", time.Hour), nil
		}).Starts(),
		process.OnTimeout("answers", func(saga, process.Input) (process.Step[saga], error) { return process.Step[saga]{}, nil }),
	), process.Config{
		Publisher: offline{}, GeneratePublishTopic: func(cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return "payment", nil },
		Now: func() time.Time { return s.env.Now() },
	})
	require.NoError(t, err)
	msg := message.NewMessageWithContext(t.Context(), "e1", []byte(`{}`))
	msg.Metadata = message.Metadata{"name": "order.placed", "aggregate_type": "order", "aggregate_id": "o1"}
	require.Error(t, m.Handle(msg))
	return s, m
}

// later moves the clock.
func (s *shell) later(d time.Duration) {
	now := s.env.Now().Add(d)
	s.env.Now = func() time.Time { return now }
}

func TestWhatProcessesHaveLeftToDoIsListed(t *testing.T) {
	t.Parallel()
	s, m := setupProcesses(t)
	s.later(2 * time.Minute)
	_, err := m.Fire(t.Context())
	require.Error(t, err)

	for _, args := range [][]string{{"process", "list"}, {"process", "list", "saga"}, {"process", "list", "saga", "o1"}} {
		rows := cells(t, s.ok(t, args...))
		require.Len(t, rows, 2)
		assert.Equal(t, "saga o1", rows[0]["PROCESS"])
		assert.Equal(t, "commands/e1", rows[0]["ROW"])
		assert.Regexp(t, `^2m\d+s$`, rows[0]["LATE"])
		assert.Equal(t, "1", rows[0]["ATTEMPTS"])
		assert.Equal(t, "1", rows[0]["COMMANDS"])
		assert.Contains(t, rows[0]["FAILURE"], "the broker is offline")
		assert.Equal(t, "timeout/answers", rows[1]["ROW"])
		assert.Equal(t, "-", rows[1]["LATE"])
	}
	assert.Len(t, cells(t, s.ok(t, "process", "list", "--overdue")), 1)
	assert.Len(t, cells(t, s.ok(t, "process", "list", "--failed")), 1)
	assert.Equal(t, outcome{err: "No pending timeout or command matches.\n"}, s.run(t, "process", "list", "saga", "nosuch"))
	assert.Equal(t, outcome{}, s.run(t, "process", "list", "saga", "nosuch", "--json"), "a program counts lines")
	s.later(time.Hour)
	assert.Len(t, cells(t, s.ok(t, "process", "list", "--overdue")), 2)

	commands := lines(t, s.ok(t, "process", "list", "--failed", "--json"))[0]
	assert.Equal(t, "pending", commands["kind"])
	assert.Equal(t, "e1", commands["input"])
	assert.Equal(t, map[string]any{"type": "saga", "value": "o1"}, commands["process"])
	assert.Greater(t, commands["seconds"], 3600.0)
	sent := commands["commands"].([]any)[0].(map[string]any)
	assert.Equal(t, "payment", sent["topic"])
	assert.NotEmpty(t, sent["id"])
	assert.Equal(t, map[string]any{"Order": "o1"}, sent["payload"])
}

func TestWhatFailedIsTriedAgainAtOnceAndATimeoutNotBeforeItIsDue(t *testing.T) {
	t.Parallel()
	s, m := setupProcesses(t)
	s.later(time.Minute)
	_, err := m.Fire(t.Context())
	require.Error(t, err)
	_, err = m.Fire(t.Context())
	require.NoError(t, err, "it is not tried yet")
	assert.Contains(t, s.ok(t, "process", "retry", "saga", "o1", "commands/e1"), "is tried again")
	_, err = m.Fire(t.Context())
	require.Error(t, err)
	again := lines(t, s.ok(t, "process", "retry", "saga", "o1", "commands/e1", "--json"))[0]
	assert.Equal(t, "retried", again["kind"])
	assert.InDelta(t, 2, again["attempts"], 0)

	o := s.run(t, "process", "retry", "saga", "o1", "timeout/answers")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "is not due before")
}

func TestWhatIsDroppedIsPrintedAndGone(t *testing.T) {
	t.Parallel()
	s, _ := setupProcesses(t)
	o := s.run(t, "process", "drop", "saga", "o1", "commands/e1")
	assert.Equal(t, command.ExitUsage, o.code)
	assert.Contains(t, o.err, "counts 1 command as sent")
	s.env.InTerminal = true
	s.env.In = strings.NewReader("o1\n")
	assert.Regexp(t, `^Dropped commands/e1 of saga o1\n  payment  [0-9a-f-]{36}  \{"Order":"o1"\}\n$`, s.ok(t, "process", "drop", "saga", "o1", "commands/e1"))
	given := lines(t, s.ok(t, "process", "drop", "saga", "o1", "timeout/answers", "--yes", "--json"))[0]
	assert.Equal(t, "given_up", given["kind"])
	assert.Equal(t, "answers", given["timeout"])

	assert.Empty(t, s.ok(t, "process", "list"))
	o = s.run(t, "process", "drop", "saga", "o1", "timeout/answers", "--yes")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "`millrace process list` lists pending timeouts and commands")
}

func TestAMisspelledTypeOfProcessesDoesNotLookHealthy(t *testing.T) {
	t.Parallel()
	s, _ := setupProcesses(t)
	for _, line := range []string{"list sago", "list sago o1", "list sago --overdue", "list sago --json", "list --open sago", "list --open sago --json"} {
		o := s.run(t, strings.Fields("process "+line)...)
		assert.Equal(t, command.ExitNoTopic, o.code, line)
		assert.Contains(t, o.err, `there is no topic "sago"`, line)
		assert.Empty(t, o.out, line)
	}
	assert.Equal(t, outcome{err: "No process of type \"saga\" is open.\n"}, s.run(t, "process", "list", "--open", "saga"))
}

func TestWithoutTheTableOfProcessesTheCommandSaysWhoMakesIt(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	for _, line := range []string{"process list", "process list --open", "process retry saga o1 timeout/answers", "process unlist saga o1", "process list --process-table elsewhere"} {
		o := s.run(t, strings.Fields(line)...)
		assert.Equal(t, command.ExitFailure, o.code, line)
		assert.Contains(t, o.err, "process.CreateTable", line)
	}
}
