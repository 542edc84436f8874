package command_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/journal"
)

func TestTopicsAreListedWithTheirAggregates(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	assert.Contains(t, setupTables(t).run(t, "topics").err, "The journal has no aggregates.")
	deposits(t, j, aggregate.ID{Type: "order", Value: "1"}, 1, 4)

	assert.Equal(t, []map[string]string{
		{"TOPIC": "account", "AGGREGATES": "2", "EVENTS": "5"}, {"TOPIC": "order", "AGGREGATES": "1", "EVENTS": "4"},
	}, cells(t, s.ok(t, "topics")))
	objects := lines(t, s.ok(t, "topics", "--json"))
	assert.Equal(t, map[string]any{"kind": "topic", "topic": "order", "aggregates": 1.0, "events": 4.0}, objects[1])
}

func TestAggregatesOfATypeAreListedInParts(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	want := map[string]string{}
	for n := 1; n <= 7; n++ {
		deposits(t, j, account(fmt.Sprint(n)), 1, n)
		want[fmt.Sprint(n)] = fmt.Sprint(n)
	}
	require.NoError(t, j.Delete(t.Context(), account("7"), 7, journal.RemoveOptions{}))
	deposits(t, j, aggregate.ID{Type: "order", Value: "1"}, 1, 1)

	got, after := map[string]string{}, ""
	for parts := 0; len(got) < 7 && parts < 7; parts++ {
		args := []string{"aggregates", "account", "--limit", "3"}
		if after != "" {
			args = append(args, "--after", after)
		}
		rows := cells(t, s.ok(t, args...))
		assert.LessOrEqual(t, len(rows), 3)
		for _, row := range rows {
			after = row["ID"]
			assert.NotContains(t, got, after, "none comes twice")
			got[after] = row["VERSION"]
		}
	}

	assert.Equal(t, want, got)
	for _, l := range lines(t, s.ok(t, "aggregates", "account", "--json")) {
		deleted := l["aggregate"].(map[string]any)["value"] == "7"
		assert.Equal(t, deleted, l["deleted_at"] != nil)
	}
	assert.Empty(t, s.ok(t, "aggregates", "account", "--after", after), "the end is no error")
}

func TestATopicThatDoesNotExistHasAnExitCodeOfItsOwn(t *testing.T) {
	t.Parallel()
	s, _ := setupGroup(t)
	for _, line := range []string{
		"aggregates acount", "stream acount 1", "tail acount", "groups audit acount", "groups audit acount --watch",
		"group pause audit acount", "group parked audit acount", "group unpark audit acount 1", "group unpark audit acount --all",
		"group skip audit acount 1 1", "group reset audit acount --to now --yes", "group reconcile audit acount",
	} {
		o := s.run(t, strings.Fields(line)...)
		assert.Equal(t, command.ExitNoTopic, o.code, line)
		assert.Contains(t, o.err, `there is no topic "acount"`, line)
		assert.Contains(t, o.err, "`millrace topics` lists all topics", line)
		assert.Empty(t, o.out, line)
	}
	for _, line := range []string{"groups nobody account", "stream account nobody"} {
		assert.Equal(t, command.ExitFailure, s.run(t, strings.Fields(line)...).code, line)
	}
	file := filepath.Join(t.TempDir(), "all.jsonl")
	s.ok(t, "export", file)
	for _, line := range []string{
		"export new --type acount", "export new --resume --type acount --id 1", "export - --type acount", "verify --type acount",
		"verify --type acount --id 1", "verify --type acount --against " + file,
	} {
		o := s.run(t, strings.Fields(line)...)
		assert.Equal(t, command.ExitNoTopic, o.code, line)
		assert.Contains(t, o.err, `there is no topic "acount"`, line)
		assert.Empty(t, o.out, line)
	}
	assert.NoFileExists(t, "new")
	s.ok(t, "verify", "--type", "account", "--against", file)
	assert.Contains(t, s.run(t, "tail", "account ").err, "The name has spaces around it.")
}

func TestATopicWhoseEventsWereRemovedExists(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	deposits(t, j, account("1"), 1, 2)
	require.NoError(t, j.Delete(t.Context(), account("1"), 2, journal.RemoveOptions{}))

	assert.Equal(t, outcome{err: "No events of \"account\" are left: they were removed.\n"}, s.run(t, "tail", "account", "--since", "beginning"))
	assert.Equal(t, command.ExitFailure, s.run(t, "group", "pause", "audit", "account").code)
}
