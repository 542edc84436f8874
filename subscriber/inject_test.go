package subscriber_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

var errRefused = errors.New("connection refused")

// onRow matches the updates and deletions of rows whose sort key begins with a prefix. Of updates
// it matches only those whose expression contains some text.
func onRow(prefix, text string) dynamotest.When {
	return dynamotest.Matching(func(_ string, in any) bool {
		var key map[string]types.AttributeValue
		switch in := in.(type) {
		case *dynamodb.UpdateItemInput:
			if !strings.Contains(*in.UpdateExpression, text) {
				return false
			}
			key = in.Key
		case *dynamodb.DeleteItemInput:
			key = in.Key
		}
		sort, ok := key["skey"].(*types.AttributeValueMemberS)
		return ok && strings.HasPrefix(sort.Value, prefix)
	})
}

// onHeartbeat matches the heartbeats of members.
func onHeartbeat() dynamotest.When { return onRow("shards", "SET #members.#m.#heartbeat = ") }

// onStop matches the write that stops a group.
func onStop() dynamotest.When { return onRow("shards", "#stopped = ") }

// at opens the tables in a process with another clock.
func at(t *testing.T, client journal.Client, now func() time.Time) *journal.Journal {
	t.Helper()
	return testjournal.Open(t, client, journal.Config{Now: now})
}

// progress reads the stored cursor and the behind list of shard 0.
func progress(t *testing.T, j *journal.Journal) checkpoint.Progress {
	t.Helper()
	progress, err := checkpoint.New(j).Progress(context.Background(), checkpoint.Shard{Group: checkpoint.Group{Name: "group"}, Topic: topic})
	require.NoError(t, err)
	return progress
}

// membership reads the membership of the group.
func membership(t *testing.T, j *journal.Journal) checkpoint.Membership {
	t.Helper()
	r, err := checkpoint.New(j).ReadMembership(context.Background(), checkpoint.Key{Group: "group", Topic: topic})
	require.NoError(t, err)
	return r
}

// awaitHeartbeats waits until each member has sent some more heartbeats.
func awaitHeartbeats(t *testing.T, j *journal.Journal, n uint64) {
	t.Helper()
	for range n {
		before := membership(t, j)
		eventually(t, "the members send heartbeats", func() bool {
			now := membership(t, j)
			for member, state := range before.Members {
				if is, still := now.Members[member]; still && is.Heartbeat == state.Heartbeat {
					return false
				}
			}
			return true
		})
	}
}

// diary is a logger that stores its lines.
type diary struct {
	watermill.NopLogger
	mu    sync.Mutex
	lines []line
}

type line struct {
	msg    string
	fields watermill.LogFields
}

func (d *diary) Error(msg string, _ error, fields watermill.LogFields) { d.note(msg, fields) }
func (d *diary) Info(msg string, fields watermill.LogFields)           { d.note(msg, fields) }
func (d *diary) With(watermill.LogFields) watermill.LoggerAdapter      { return d }

func (d *diary) note(msg string, fields watermill.LogFields) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line{msg, fields})
}

// of returns the lines that contain a text.
func (d *diary) of(text string) (found []line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lines {
		if strings.Contains(l.msg, text) {
			found = append(found, l)
		}
	}
	return found
}
