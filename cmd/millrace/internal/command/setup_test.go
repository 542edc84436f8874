package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// patience limits the time that a test waits before it fails. It says nothing about speed.
const patience = 2 * time.Minute

// shell runs commands on a DynamoDB.
type shell struct {
	client *dynamodb.Client
	env    command.Env
}

func setup(t *testing.T) *shell {
	t.Helper()
	client := testdb.Client(t)
	return &shell{client: client, env: command.Env{
		In:      strings.NewReader(""),
		Getenv:  func(string) string { return "" },
		Connect: func(context.Context, store.Target) (journal.Client, error) { return client, nil },
		Now:     time.Now,
	}}
}

// stopClock stops the clock of the commands.
func (s *shell) stopClock() {
	now := time.Now()
	s.env.Now = func() time.Time { return now }
}

// setupTables is setup with tables for four shards.
func setupTables(t *testing.T) *shell {
	t.Helper()
	s := setup(t)
	require.NoError(t, journal.Create(t.Context(), s.client, journal.Config{Layout: journal.Classic, Shards: 4}))
	return s
}

// outcome is the result of a command.
type outcome struct {
	code     int
	out, err string
}

func (s *shell) run(t *testing.T, args ...string) outcome {
	t.Helper()
	return s.runWith(t.Context(), args...)
}

func (s *shell) runWith(ctx context.Context, args ...string) outcome {
	var out, err bytes.Buffer
	env := s.env
	env.Out, env.Err = &out, &err
	code := command.Run(ctx, args, env)
	return outcome{code, out.String(), err.String()}
}

// ok runs a command that must succeed, and returns its output.
func (s *shell) ok(t *testing.T, args ...string) string {
	t.Helper()
	o := s.run(t, args...)
	require.Equal(t, command.ExitOK, o.code, "millrace %s: %s", strings.Join(args, " "), o.err)
	return o.out
}

// lines decodes the output of a command with --json.
func lines(t *testing.T, out string) (objects []map[string]any) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		var object map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &object), "each line must be an object: %s", line)
		require.NotEmpty(t, object["kind"], "each object must have a kind: %s", line)
		objects = append(objects, object)
	}
	return objects
}

// cells parses a table: it returns its rows, each by the names of the columns. Columns are two or
// more spaces apart.
func cells(t *testing.T, table string) (rows []map[string]string) {
	t.Helper()
	text := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	header := []rune(text[0])
	var starts []int
	for i := range header {
		if header[i] != ' ' && (i == 0 || header[i-1] == ' ') {
			starts = append(starts, i)
		}
	}
	for _, line := range text[1:] {
		row := map[string]string{}
		for i, start := range starts {
			end := len([]rune(line))
			if i+1 < len(starts) {
				end = min(end, starts[i+1])
			}
			name := strings.Fields(string(header[start:]))[0]
			if start < end {
				row[name] = strings.TrimSpace(string([]rune(line)[start:end]))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// open opens the journal like an application.
func (s *shell) open(t *testing.T, config journal.Config) *journal.Journal {
	t.Helper()
	j, err := journal.Open(t.Context(), s.client, config)
	require.NoError(t, err)
	return j
}

func account(value string) aggregate.ID { return aggregate.ID{Type: "account", Value: value} }

// deposit returns an event whose payload and id contain its number.
func deposit(id aggregate.ID, n int) storage.Event {
	return storage.Event{
		ID: fmt.Sprintf("%s/%d", id, n), Type: "account.deposited.v1", Payload: fmt.Appendf(nil, `{"Amount": %d}`, n),
		Metadata: aggregate.Metadata{"correlation_id": "request-1"},
	}
}

// deposits appends the events from..to to an aggregate that has the earlier events.
func deposits(t *testing.T, j *journal.Journal, id aggregate.ID, from, to int) {
	t.Helper()
	c := storage.Commit{Aggregate: id, Expected: uint64(from - 1)}
	for n := from; n <= to; n++ {
		c.Events = append(c.Events, deposit(id, n))
	}
	_, err := j.Internal().Append(t.Context(), c)
	require.NoError(t, err)
}

// screen is a terminal that is safe for several goroutines.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
