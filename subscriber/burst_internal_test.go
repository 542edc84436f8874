package subscriber

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
)

// A commit of another goroutine of the process, after the last subscription has nothing to do and
// before it ends.
func TestACommitAfterTheEndOfABurstDoesNotPanic(t *testing.T) {
	t.Parallel()
	b := &burst{working: 2, done: make(chan struct{})}
	i := b.newInbox("account")
	b.add(-1)
	i.take(1000) // nothing to do: the burst is done
	i.add(aggregate.ID{Type: "account", Value: "x"}, 1)
	assert.NotPanics(t, i.end)
}
