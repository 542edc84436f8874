package command_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

type (
	trip   struct{ Step int }
	packed struct{}
	home   struct{}
)

func (packed) EventType() string { return "trip.packed" }
func (packed) Apply(t *trip)     { t.Step++ }
func (home) EventType() string   { return "trip.home" }
func (home) Apply(t *trip)       { t.Step = -1 }

// arrived ends a trip.
type arrived struct{}

func (arrived) EventType() string { return "order.arrived" }

// trips has a process for each order, which begins with the order and ends with its arrival.
func trips(t *testing.T, s *shell, j *journal.Journal) *process.Manager[trip] {
	t.Helper()
	m, err := process.New(j, s.client, process.Define(aggregate.Define[trip]("trip", packed{}, home{}),
		process.On(func(_ placed, in process.Input) string { return in.Source.Value }, func(trip, placed, process.Input) (process.Step[trip], error) {
			return process.Record(packed{}), nil
		}).Starts(),
		process.On(func(_ arrived, in process.Input) string { return in.Source.Value }, func(trip, arrived, process.Input) (process.Step[trip], error) {
			return process.Record(home{}), nil
		}),
	).EndsWhen(func(t trip) bool { return t.Step < 0 }), process.Config{Now: func() time.Time { return s.env.Now() }})
	require.NoError(t, err)
	return m
}

func handle(t *testing.T, m *process.Manager[trip], uuid, order string, e interface{ EventType() string }) {
	t.Helper()
	msg := message.NewMessageWithContext(t.Context(), uuid, []byte(`{}`))
	msg.Metadata = message.Metadata{"name": e.EventType(), "aggregate_type": "order", "aggregate_id": order}
	require.NoError(t, m.Handle(msg))
}

func TestOpenProcessesAreListedWithTheirStateAndAge(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	s.stopClock()
	require.NoError(t, process.CreateTable(t.Context(), s.client, ""))
	j := s.open(t, journal.Config{})
	m := trips(t, s, j)
	deposits(t, j, aggregate.ID{Type: "trip", Value: "earlier"}, 1, 1) // makes the topic
	for line, note := range map[string]string{
		"":                `^No process is open.\n$`,
		"trip":            `^No process of type "trip" is open.\n$`,
		"trip o1":         `^No process "o1" of type "trip" is open.\n$`,
		"trip --older 1h": `^No process of type "trip" that began before \d{4}-[-0-9T:. Z]+ is open.\n$`,
	} {
		o := s.run(t, strings.Fields("process list --open "+line)...)
		assert.Regexp(t, note, o.err, line)
		assert.Equal(t, command.ExitOK, o.code, line)
		assert.Empty(t, o.out, line)
	}
	for i := range 5 {
		handle(t, m, fmt.Sprint("placed-", i), fmt.Sprint("o", i), placed{})
		s.later(time.Hour)
	}
	handle(t, m, "again", "o1", placed{})
	handle(t, m, "arrived", "o0", arrived{})

	rows := cells(t, s.ok(t, "process", "list", "--open"))
	require.Len(t, rows, 4)
	assert.Equal(t, "trip o1", rows[0]["PROCESS"], "the oldest first")
	assert.Regexp(t, `^4h0m\d+s$`, rows[0]["AGE"])
	assert.Equal(t, "2", rows[0]["EVENTS"])
	assert.Equal(t, "trip.packed", rows[0]["LAST"])
	assert.Contains(t, rows[0]["STATE"], `"Step":2`)
	assert.Equal(t, "trip o4", rows[3]["PROCESS"])

	assert.Len(t, cells(t, s.ok(t, "process", "list", "--open", "trip", "--older", "150m")), 2)
	assert.Len(t, cells(t, s.ok(t, "process", "list", "--open", "trip", "o3")), 1)
	assert.Len(t, cells(t, s.ok(t, "process", "list", "--open", "--limit", "0")), 4)
	o := s.run(t, "process", "list", "--open", "--limit", "1")
	assert.Equal(t, "trip o1", cells(t, o.out)[0]["PROCESS"])
	assert.Equal(t, "The oldest 1 of 4 open processes; --limit shows more.\n", o.err)
	assert.Equal(t, outcome{}, s.run(t, "process", "list", "--open", "trip", "earlier", "--json"), "a program counts lines")
	assert.Equal(t, outcome{err: "No pending timeout or command matches.\n"}, s.run(t, "process", "list"), "they have nothing left to do")

	line := lines(t, s.ok(t, "process", "list", "--open", "trip", "o1", "--json"))[0]
	assert.Equal(t, "process", line["kind"])
	assert.Equal(t, map[string]any{"type": "trip", "value": "o1"}, line["process"])
	assert.InDelta(t, 4*3600, line["seconds"], 600)
	assert.InDelta(t, 2, line["version"], 0)
	assert.Equal(t, "trip.packed", line["event"])
	assert.NotEmpty(t, line["event_at"])
	assert.NotEmpty(t, line["begun"])
	assert.InDelta(t, 2, line["snapshot"].(map[string]any)["number"], 0)
	assert.Contains(t, fmt.Sprint(line["payload"]), "Step:2")
}

func TestAProcessThatWasDeletedIsListedAsThatAndUnlisted(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	require.NoError(t, process.CreateTable(t.Context(), s.client, ""))
	j := s.open(t, journal.Config{})
	handle(t, trips(t, s, j), "e1", "o1", placed{})
	require.NoError(t, j.Delete(t.Context(), aggregate.ID{Type: "trip", Value: "o1"}, 1, journal.RemoveOptions{}))
	assert.Contains(t, cells(t, s.ok(t, "process", "list", "--open"))[0]["STATE"], "deleted at")

	assert.Equal(t, "trip o1 is not listed any more\n", s.ok(t, "process", "unlist", "trip", "o1"))
	assert.Empty(t, s.ok(t, "process", "list", "--open"))
	o := s.run(t, "process", "unlist", "trip", "o1", "--json")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Regexp(t, "^millrace: unlist process trip-o1: it is not listed as open\n`millrace process list`.*--open", o.err)
}

func TestTheStateOfAnEncryptedProcessIsNotShown(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	require.NoError(t, process.CreateTable(t.Context(), s.client, ""))
	handle(t, trips(t, s, s.openEncrypted(t)), "e1", "o1", placed{})

	row := cells(t, s.ok(t, "process", "list", "--open"))[0]
	assert.Regexp(t, `^\(aes-gcm, \d+ B\)$`, row["STATE"])
	assert.Equal(t, "trip.packed", row["LAST"])
	line := lines(t, s.ok(t, "process", "list", "--open", "--json"))[0]
	assert.Equal(t, true, line["undecoded"])
	assert.NotEmpty(t, line["payload_base64"])
}
