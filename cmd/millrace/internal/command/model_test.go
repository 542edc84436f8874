package command_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/subscriber"
)

// setupModel is setupTables with a read model, whose first generation serves, and 300 events.
func setupModel(t *testing.T) (*shell, *readmodel.Model, *journal.Journal) {
	t.Helper()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	require.NoError(t, readmodel.CreateTable(t.Context(), s.client, ""))
	for n := range 6 {
		deposits(t, j, account("1"), n*50+1, n*50+50)
	}
	m, err := readmodel.Open(t.Context(), s.client, readmodel.Config{
		Name: "totals", Journal: j, Topics: []string{"account"}, Refresh: 10 * time.Millisecond, MaxAge: time.Millisecond,
	})
	require.NoError(t, err)
	return s, m, j
}

// consume runs the program of the read model.
func consume(t *testing.T, m *readmodel.Model, j *journal.Journal) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = m.Run(ctx, func(ctx context.Context, g readmodel.Generation) error {
			sub, err := subscriber.NewSubscriber(subscriber.Config{
				Journal: j, ConsumerGroup: g.Group(), Timing: subscriber.Timing{
					LeaseDuration: 3 * time.Second, CommitInterval: 10 * time.Millisecond,
					PollInterval: 5 * time.Millisecond, MaxPollInterval: 50 * time.Millisecond,
				}, CloseTimeout: time.Second,
			}, nil)
			if err != nil {
				return err
			}
			messages, err := sub.Subscribe(ctx, "account")
			if err != nil {
				return err
			}
			for msg := range messages {
				msg.Ack()
			}
			return sub.Close()
		})
	}()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return stop
}

// begins creates a group on accounts, with a member that has crashed.
func begins(t *testing.T, j *journal.Journal, group string) {
	t.Helper()
	membership, number := checkpoint.NewMembership(j.Shards(), time.Time{}).Join(checkpoint.Member{})
	_, err := checkpoint.New(j).ChangeMembership(t.Context(), checkpoint.Key{Group: group, Topic: "account"}, checkpoint.Membership{}, membership.Take(number, []int{0}))
	require.NoError(t, err)
}

func TestAReadModelIsBuiltAnewAtTheTerminal(t *testing.T) {
	t.Parallel()
	s, m, j := setupModel(t)
	consume(t, m, j)

	assert.Regexp(t, `(?m)^group +totals\.2$`, s.ok(t, "model", "begin", "totals"))
	caught := s.ok(t, "model", "catch-up", "totals")
	assert.Regexp(t, `(?m)^generation +2$`, caught)
	assert.Regexp(t, `(?m)^left +\d+ events?$`, caught)
	assert.Regexp(t, `(?m)^state +serving$`, s.ok(t, "model", "switch", "totals"))
	assert.Equal(t, []map[string]string{{"MODEL": "totals", "SERVING": "2", "FORM": "-", "PREVIOUS": "1", "LIVE": "1 2"}}, cells(t, s.ok(t, "model")))

	for range 2 { // the second time does nothing
		back := lines(t, s.ok(t, "model", "rollback", "totals", "2", "--json"))[0]
		assert.Equal(t, "generation", back["kind"])
		assert.InDelta(t, 1, back["generation"], 0)
		assert.Equal(t, "serving", back["state"])
	}
	assert.Regexp(t, `(?m)^generation +2$`, s.ok(t, "model", "rollback", "totals"))

	dropped := s.ok(t, "model", "drop", "totals", "totals.1", "--yes", "--refresh", "10ms")
	assert.Regexp(t, `^Dropped generation totals\.1\. 0 old rows deleted\.\n$`, dropped)
	assert.Equal(t, []map[string]string{{"MODEL": "totals", "SERVING": "2", "FORM": "-", "PREVIOUS": "-", "LIVE": "2"}}, cells(t, s.ok(t, "model")))
	assert.Contains(t, s.run(t, "groups", "totals.1").err, "no such consumer group")
}

func TestReadModelsAreListedAsJSON(t *testing.T) {
	t.Parallel()
	s, m, _ := setupModel(t)
	_, err := m.Begin(t.Context())
	require.NoError(t, err)
	objects := lines(t, s.ok(t, "model", "--json"))
	require.Len(t, objects, 1)
	assert.Equal(t, map[string]any{"kind": "model", "model": "totals", "serving": 1.0, "live": []any{1.0, 2.0}}, objects[0])
}

func TestGenerationsAreListedWithWhatIsLeft(t *testing.T) {
	t.Parallel()
	s, m, j := setupModel(t)
	begins(t, j, "totals.1")
	_, err := m.Begin(t.Context())
	require.NoError(t, err)

	rows := cells(t, s.ok(t, "model", "totals", "--exact"))
	assert.Equal(t, []map[string]string{
		{"GENERATION": "1", "FORM": "-", "STATE": "serving", "GROUP": "totals.1", "LEFT": "300", "PARKED": "0", "SKIPPED": "0", "RESTS": "-"},
		{"GENERATION": "2", "FORM": "-", "STATE": "live", "GROUP": "totals.2", "LEFT": "not begun", "PARKED": "0", "SKIPPED": "0", "RESTS": "-"},
	}, rows)
	assert.Regexp(t, `^\d+\+$`, cells(t, s.ok(t, "model", "totals"))[0]["LEFT"], "an estimate")
	objects := lines(t, s.ok(t, "model", "totals", "--json", "--exact"))
	require.Len(t, objects, 2)
	assert.Equal(t, map[string]any{
		"kind": "generation", "model": "totals", "generation": 1.0, "group": "totals.1", "state": "serving",
		"begun": true, "events": 300.0, "parked_events": 0.0, "skipped_events": 0.0, "at_least": false,
	}, objects[0])
	assert.Equal(t, "not begun", cells(t, s.ok(t, "model", "totals", "--topic", "account,transfer"))[0]["LEFT"])
}

func TestGenerationsAreListedWithWhatTheySkippedAndWhereTheyRest(t *testing.T) {
	t.Parallel()
	s, _, j := setupModel(t)
	begins(t, j, "totals.1")
	s.ok(t, "group", "skip", "totals.1", "account", "1", "1")
	s.ok(t, "group", "pause", "totals.1", "account")
	row := cells(t, s.ok(t, "model", "totals", "--exact"))[0]
	assert.Equal(t, "299", row["LEFT"])
	assert.Equal(t, "1", row["SKIPPED"])
	assert.Equal(t, "paused on account", row["RESTS"])
	line := lines(t, s.ok(t, "model", "totals", "--json"))[0]
	assert.InDelta(t, 1, line["skipped_events"], 0)
	assert.Equal(t, []any{"account"}, line["paused"])
	caught := s.ok(t, "model", "catch-up", "totals", "1", "--max-lag", "300")
	assert.Regexp(t, `(?m)^skipped +1$`, caught)
	assert.Regexp(t, `(?m)^rests +paused on account$`, caught)
}

func TestGenerationsAreListedWithTheirForms(t *testing.T) {
	t.Parallel()
	s, _, _ := setupModel(t)
	assert.Regexp(t, `(?m)^form +2$`, s.ok(t, "model", "begin", "totals", "--form", "2"))
	s.ok(t, "model", "begin", "totals")
	rows := cells(t, s.ok(t, "model", "totals"))
	require.Len(t, rows, 3)
	assert.Equal(t, []string{"-", "2", "-"}, []string{rows[0]["FORM"], rows[1]["FORM"], rows[2]["FORM"]}, "what serves has no name for it")
	assert.Equal(t, "2", lines(t, s.ok(t, "model", "totals", "--json"))[1]["form"])
	assert.Equal(t, "-", cells(t, s.ok(t, "model"))[0]["FORM"])
	o := s.run(t, "model", "switch", "totals", "2")
	assert.Contains(t, o.err, `programs that know the form "2"`)
	o = s.run(t, "model", "begin", "totals", "--form", "a b")
	assert.Equal(t, command.ExitUsage, o.code)
	assert.Contains(t, o.err, "Forms have")
}

func TestCatchingUpIsShownAndAnInterruptTellsHowFarItWas(t *testing.T) {
	t.Parallel()
	s, m, j := setupModel(t)
	begins(t, j, "totals.1")
	_, err := m.Begin(t.Context())
	require.NoError(t, err)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	outcomes := make(chan outcome, 1)
	s.env.ErrTerminal = true
	log := &screen{}
	go func() {
		env := s.env
		env.Out, env.Err = &screen{}, log
		outcomes <- outcome{code: command.Run(ctx, []string{"model", "catch-up", "totals"}, env)}
	}()
	shows := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(log.String(), text) }, patience, 5*time.Millisecond, text)
	}
	shows("totals.2: waiting for consumers on all topics")
	begins(t, j, "totals.2")
	shows("totals.2: 300 events left")
	interrupt()
	assert.Equal(t, command.ExitFailure, (<-outcomes).code)
	assert.Contains(t, log.String(), "totals.2 is 300 events behind")
	assert.Contains(t, log.String(), "--max-lag")

	s.env.ErrTerminal = false
	assert.Contains(t, s.ok(t, "model", "catch-up", "totals", "2", "--max-lag", "300"), "300 events")
	o := s.run(t, "model", "switch", "totals")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "`millrace model catch-up` waits")
	s.ok(t, "model", "switch", "totals", "--max-lag", "300")
	o = s.run(t, "model", "switch", "totals")
	assert.Equal(t, command.ExitFailure, o.code, "the old generation is not the default")
	assert.Contains(t, o.err, "is newer than the serving generation totals.2")
}

// watched counts the reads of groups.
type watched struct {
	*dynamodb.Client
	looks atomic.Int64
}

func (w *watched) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if *in.TableName == "checkpoint" {
		w.looks.Add(1)
	}
	return w.Client.GetItem(ctx, in, o...)
}

func TestAGenerationWhoseLastMemberCrashedIsDroppedByForce(t *testing.T) {
	t.Parallel()
	s, m, j := setupModel(t)
	_, err := m.Begin(t.Context())
	require.NoError(t, err)
	begins(t, j, "totals.2")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log, client := &screen{}, &watched{Client: s.client}
	code := make(chan int, 1)
	go func() {
		env := s.env
		env.Out, env.Err = &screen{}, log
		env.Connect = func(context.Context, store.Target) (journal.Client, error) { return client, nil }
		code <- command.Run(ctx, []string{"model", "drop", "totals", "2", "--yes", "--refresh", "1ms", "--progress"}, env)
	}()
	require.Eventually(t, func() bool { return client.looks.Load() > 4 }, patience, 5*time.Millisecond, "it must try again and again")
	cancel()
	assert.Equal(t, command.ExitFailure, <-code)
	assert.Contains(t, log.String(), "totals.2: waiting until its members have left")
	assert.Contains(t, log.String(), "with --force if the members have crashed")

	done := lines(t, s.ok(t, "model", "drop", "totals", "2", "--yes", "--force", "--refresh", "1ms", "--json"))
	assert.Equal(t, map[string]any{"kind": "dropped", "model": "totals", "generation": 2.0, "rows": 0.0}, done[0])
	assert.Contains(t, s.run(t, "groups", "totals.2").err, "no such consumer group")
}

func TestADropIsConfirmedByTheNameOfTheReadModel(t *testing.T) {
	t.Parallel()
	s, m, _ := setupModel(t)
	_, err := m.Begin(t.Context())
	require.NoError(t, err)
	drop := []string{"model", "drop", "totals", "2", "--refresh", "1ms"}
	o := s.run(t, drop...)
	assert.Equal(t, command.ExitUsage, o.code)
	assert.Contains(t, o.err, "--yes")
	s.env.InTerminal = true
	s.env.In = strings.NewReader("2\n")
	o = s.run(t, drop...)
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "Type totals to continue: ")
	left, err := m.Generations(t.Context())
	require.NoError(t, err)
	assert.Len(t, left.Live, 2)
	s.env.In = strings.NewReader("totals\n")
	s.ok(t, drop...)
}

func TestWhatIsWrongWithAReadModelIsSaidWithWhatToDo(t *testing.T) {
	t.Parallel()
	s, _, _ := setupModel(t)
	for line, want := range map[string]string{
		"model total":                        "`millrace model` lists all read models",
		"model begin total":                  "no such read model",
		"model switch totals 7":              "`millrace model NAME` lists all generations",
		"model drop totals 1 --yes":          "`millrace model switch`",
		"model rollback totals":              "no previous generation",
		"model --model-table elsewhere":      "readmodel.CreateTable",
		"model totals --model-table another": "readmodel.CreateTable",
	} {
		o := s.run(t, strings.Fields(line)...)
		assert.Equal(t, command.ExitFailure, o.code, line)
		assert.Contains(t, o.err, want, line)
		assert.NotContains(t, o.err, "`millrace create`", line)
	}
	o := s.run(t, "model", "begin", "a/b")
	assert.Equal(t, command.ExitUsage, o.code)
	assert.Contains(t, o.err, "letters, digits")
	assert.Len(t, cells(t, s.ok(t, "model")), 1, "none of it has made a read model")
}

func TestWhereThereAreNoReadModelsTheListSaysSo(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	require.NoError(t, readmodel.CreateTable(t.Context(), s.client, ""))
	assert.Equal(t, outcome{err: "No read models. A read model is created when a program first opens it.\n"}, s.run(t, "model"))
	assert.Equal(t, outcome{}, s.run(t, "model", "--json"), "a program counts lines")
}
