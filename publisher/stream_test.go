package publisher

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
)

func TestAStreamInUseIsNeverForgotten(t *testing.T) {
	t.Parallel()
	id := func(value string) aggregate.ID { return aggregate.ID{Type: "order", Value: value} }
	c := newStreams(1)
	a := c.acquire(id("a"))
	c.release(a)
	assert.Same(t, a, c.acquire(id("a")), "an idle one is remembered")

	for _, other := range []string{"b", "c", "d"} {
		c.release(c.acquire(id(other)))
	}

	assert.Same(t, a, c.acquire(id("a")), "two queues for one aggregate would get into each other's way")
	assert.Len(t, c.byID, 2, "the one in use and one that is idle")
}
