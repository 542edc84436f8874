package tracing

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
)

func handledBy(handler, id string) handled {
	return handled{handler, aggregate.ID{Type: "account", Value: id}}
}

func TestAttemptsAreThoseOfOneEventAndHandler(t *testing.T) {
	t.Parallel()
	a := newAttempts()
	assert.Equal(t, 1, a.count(handledBy("totals", "1"), 7))
	assert.Equal(t, 2, a.count(handledBy("totals", "1"), 7))
	assert.Equal(t, 1, a.count(handledBy("mails", "1"), 7), "another handler")
	assert.Equal(t, 1, a.count(handledBy("totals", "2"), 7), "another aggregate")
	assert.Equal(t, 3, a.count(handledBy("totals", "1"), 7))
	assert.Equal(t, 1, a.count(handledBy("totals", "1"), 8), "the next event")
	a.forget(handledBy("totals", "1"))
	assert.Equal(t, 1, a.count(handledBy("totals", "1"), 8), "handled, and delivered again by a rebuild")
}

func TestEventsThatAreHandledDoNotPushOutThoseThatFail(t *testing.T) {
	t.Parallel()
	a := newAttempts()
	a.count(handledBy("totals", "failing"), 1)
	for n := range 2 * maxAttempts {
		of := handledBy("totals", fmt.Sprint(n))
		a.count(of, 1)
		a.forget(of)
	}
	assert.Equal(t, 2, a.count(handledBy("totals", "failing"), 1))
}

func TestAttemptsTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	a := newAttempts()
	for n := range 2 * maxAttempts {
		a.count(handledBy("totals", fmt.Sprint(n)), 1)
	}
	assert.Equal(t, maxAttempts, a.known.Len())
}
