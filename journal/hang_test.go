package journal_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/faults"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// hanging is a connection on which no reply comes. It keeps how long each call would have waited for one, and ends the
// call at once as the SDK does when that time is over.
type hanging struct {
	mu    sync.Mutex
	waits []time.Duration
}

func (h *hanging) fault(ctx context.Context, call faults.Call) (any, error) {
	wait := time.Duration(math.MaxInt64)
	if deadline, ok := ctx.Deadline(); ok {
		wait = time.Until(deadline)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waits = append(h.waits, wait)
	return nil, &smithy.OperationError{
		ServiceID: dynamodb.ServiceID, OperationName: string(call.Operation), Err: &smithyhttp.RequestSendError{Err: context.DeadlineExceeded},
	}
}

func TestAConnectionThatHangsHoldsACommitUpNoLongerThanItsBudget(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, journal.Config{})
		for name, test := range map[string]struct {
			budget, most time.Duration
		}{
			"a budget":           {time.Minute, time.Minute},
			"as good as none":    {time.Nanosecond, time.Second},
			"less than a second": {500 * time.Millisecond, time.Second},
		} {
			client, hung := faults.New(s.client), &hanging{}
			j := s.through(t, client, func(c *journal.Config) { c.RetryBudget = test.budget })
			client.Inject(faults.TransactWriteItems, faults.Times(1, hung.fault))
			client.Inject(faults.GetItem, hung.fault)

			receipt, err := j.Append(t.Context(), one(name))

			if test.budget == time.Nanosecond {
				require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
				require.ErrorIs(t, err, context.DeadlineExceeded)
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
}

// A refusal after an attempt whose reply was lost makes Append look for what that one wrote.
func TestALookForALostCommitThatHangsEndsWithTheBudget(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	c := s.callersTable(t)
	taken := item{"id": text("taken")}
	s.put(t, c.name, taken)
	client, hung := faults.New(s.client), &hanging{}
	j := s.through(t, client, func(c *journal.Config) { c.RetryBudget = time.Minute })
	client.Inject(faults.TransactWriteItems, faults.Times(1, hung.fault))
	client.Inject(faults.GetItem, hung.fault)

	_, err := j.Append(t.Context(), with("1", c.insert(taken)))

	require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
	require.Len(t, hung.waits, 2)
	assert.LessOrEqual(t, hung.waits[1], time.Minute)
	assert.Greater(t, hung.waits[1], time.Minute/2)
}
