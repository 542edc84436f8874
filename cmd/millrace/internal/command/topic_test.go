package command_test

import (
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

func TestATopicThatIsAQueueIsTrimmed(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	yesterday := s.open(t, journal.Config{Now: func() time.Time { return time.Now().Add(-24 * time.Hour) }})
	p, err := publisher.NewPublisher(publisher.Config{Journal: yesterday, StreamID: "worker"}, nil)
	require.NoError(t, err)
	require.NoError(t, p.Publish("account", message.NewMessage("", nil)))
	id := aggregate.ID{Type: "account", Value: "worker"}

	o := s.run(t, "topic", "trim", "account", "--keep", "1h", "--yes")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "--without-groups")
	m := join(t, s.open(t, journal.Config{}))
	m.handle(t, 1)
	require.NoError(t, m.Close())
	require.NoError(t, p.Publish("account", message.NewMessage("", nil)))
	require.NoError(t, p.Close())

	const want = " 1 event of 1 stream of topic account\ngroup audit holds up 1 stream\n"
	assert.Equal(t, "would remove"+want, s.ok(t, "topic", "trim", "account", "--keep", "1h", "--dry-run"))
	o = s.run(t, "topic", "trim", "account", "--keep", "1h")
	assert.Contains(t, o.err, "confirm it with --yes")
	assert.Equal(t, "removed"+want, s.ok(t, "topic", "trim", "account", "--keep", "1h", "--yes"))
	head, err := yesterday.Head(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, uint64(2), head.TruncatedBefore)
	assert.Equal(t, map[string]any{
		"kind": "trimmed", "topic": "account", "dry_run": false, "aggregates": 1.0, "streams": 1.0, "events": 0.0, "shortened": 0.0,
		"held_by": map[string]any{"audit": 1.0}, "foreign": 0.0,
	}, lines(t, s.ok(t, "topic", "trim", "account", "--keep", "1h", "--yes", "--resume-interrupted", "--json"))[0])
	assert.Contains(t, s.ok(t, "verify"), ": sound")

	assert.Equal(t, command.ExitUsage, s.run(t, "topic", "trim", "account").code)
	assert.Contains(t, s.run(t, "topic", "trim", "account", "--keep", "1s", "--yes").err, "use at least 1m0s")
	assert.Contains(t, s.run(t, "topic", "trim", "acount", "--keep", "1h", "--yes").err, "there is no topic")
}
