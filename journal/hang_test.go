package journal_test

import (
	"context"
	"io"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// hanging simulates connections without a reply. It breaks them immediately instead of waiting
// until the SDK gives up, and records how long that would have taken for each call.
type hanging struct {
	mu    sync.Mutex
	waits []time.Duration
}

// hang makes the calls of an operation hang.
func (h *hanging) hang(proxy *dynamotest.Proxy, operation string, when ...dynamotest.When) {
	when = append(when, dynamotest.On(operation))
	proxy.Inject(dynamotest.CutConnection(), when...)
	proxy.Inject(dynamotest.Pause(func(ctx context.Context) {
		wait := time.Duration(math.MaxInt64)
		if deadline, ok := ctx.Deadline(); ok {
			wait = time.Until(deadline)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.waits = append(h.waits, wait)
	}), when...)
}

func TestAConnectionThatHangsHoldsACommitUpNoLongerThanItsBudget(t *testing.T) {
	t.Parallel()
	for layout, operation := range commitOperations {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				s := setup(t, journal.Config{Layout: layout})
				for name, test := range map[string]struct {
					budget, most time.Duration
				}{
					"a budget":           {time.Minute, time.Minute},
					"as good as none":    {time.Nanosecond, time.Second},
					"less than a second": {500 * time.Millisecond, time.Second},
				} {
					proxy, hung := dynamotest.NewProxy(t, s.client), &hanging{}
					j := s.through(t, proxy.Client(testdb.Once), func(c *journal.Config) { c.RetryBudget = test.budget })
					hung.hang(proxy, operation, dynamotest.Times(1))
					hung.hang(proxy, "GetItem")

					receipt, err := j.Append(t.Context(), one(name))

					if test.budget == time.Nanosecond {
						require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
						require.ErrorIs(t, err, io.ErrUnexpectedEOF)
						require.Len(t, hung.waits, 2, "the attempt, and the look for what it wrote")
					} else {
						require.NoError(t, err, name)
						s.requireWrittenOnce(t, name, receipt, 1)
						require.Len(t, hung.waits, 1, "the commit is sent again")
					}
					for _, wait := range hung.waits {
						assert.LessOrEqual(t, wait, test.most, name)
						assert.Greater(t, wait, test.most/2, name)
					}
				}
			})
		})
	}
}

// After a refusal that follows a lost reply, Append searches for the commit of the earlier attempt.
func TestALookForALostCommitThatHangsIsGivenUp(t *testing.T) {
	eachLayoutInFakeTime(t, func(t *testing.T, s store) {
		c := s.callersTable(t)
		taken := item{"id": text("taken")}
		s.put(t, c.name, taken)
		proxy, hung := dynamotest.NewProxy(t, s.client), &hanging{}
		j := s.through(t, proxy.Client(testdb.Once), func(c *journal.Config) { c.RetryBudget = time.Minute })
		hung.hang(proxy, "TransactWriteItems", dynamotest.Times(1))
		hung.hang(proxy, "GetItem")

		_, err := j.Append(t.Context(), with("1", c.insert(taken)))

		require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
		require.Len(t, hung.waits, 2)
		assert.LessOrEqual(t, hung.waits[1], 10*time.Second, "as any read")
		assert.Greater(t, hung.waits[1], 5*time.Second)
	})
}
