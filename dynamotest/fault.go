package dynamotest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
)

// Fault is a disturbance of a call by DynamoDB or by the network. Inject of a [DB] or a [Proxy]
// injects it.
type Fault struct {
	name string
	on   []string // operations to which it can happen; nil for all
	// pushesBack means that a fault of an index also happens to writes of its table.
	pushesBack bool
	waits      bool // it only happens when the call reaches its pause
	inside     bool // it happens inside of the database, so that a Proxy does not support it
	// strike applies the fault to a call, and reports whether that is possible.
	strike func(p *plan, s strike) bool
	delay  func(*rand.Rand) time.Duration // of a change to an index
	age    time.Duration                  // of the oldest state that a read may see
}

// strike is the application of a fault to a call.
type strike struct {
	by        *Injection
	operation string
	input     any
	hits      []int // indexes in the plan's touches
	random    func() *rand.Rand
	// pause runs the function of a fault that waits.
	pause func(ctx context.Context, do func(context.Context))
}

var (
	itemWrites = []string{"PutItem", "UpdateItem", "DeleteItem"}
	batches    = []string{"BatchGetItem", "BatchWriteItem"}
	reads      = []string{"GetItem", "BatchGetItem", "Query", "Scan"}
	transacts  = []string{"TransactGetItems", "TransactWriteItems"}
)

// Throttle refuses a call because of missing throughput, with a
// ProvisionedThroughputExceededException. The affected items of a batch come back unprocessed,
// unless all are affected. A transaction is cancelled with the reason
// ProvisionedThroughputExceeded, which the SDK does not retry. With [Index] it affects reads of the
// index and writes of its table, because a throttled index also throttles these.
// [WithPartitionLimits] throttles by load instead.
func Throttle() Fault {
	return Fault{name: "Throttle", pushesBack: true, strike: func(p *plan, s strike) bool {
		switch {
		case slices.Contains(transacts, s.operation):
			return p.refuse(engine.Cancelled(len(p.touches), s.hits, engine.ThrottledCode, engine.ThrottledMessage))
		case slices.Contains(batches, s.operation) && len(p.touches) > 0:
			return p.throttle(s.hits)
		}
		return p.refuse(engine.Throttled(nil))
	}}
}

// InternalError refuses a call with an InternalServerError and without an effect. To fail a call
// that has an effect, use [LoseReply].
func InternalError() Fault {
	return Fault{name: "InternalError", strike: func(p *plan, _ strike) bool {
		return p.refuse(&types.InternalServerError{Message: aws.String("Internal server error")})
	}}
}

// Refuse refuses a call with any error of the API, such as &types.RequestLimitExceeded{}.
func Refuse(with smithy.APIError) Fault {
	mustBe(with != nil, "Refuse(nil): it needs an error")
	return Fault{name: "Refuse(" + with.ErrorCode() + ")", strike: func(p *plan, _ strike) bool { return p.refuse(with) }}
}

// Conflict makes a write, or a read in a transaction, fail as if another transaction on its items
// were under way. It does not happen to other calls. A write fails with a
// TransactionConflictException, which the SDK does not retry. A transaction is cancelled with the
// reason TransactionConflict. A write of a batch comes back unprocessed. [Hold] makes real
// transactions conflict.
func Conflict() Fault {
	on := append(slices.Concat(itemWrites, transacts), "BatchWriteItem")
	return Fault{name: "Conflict", on: on, strike: func(p *plan, s strike) bool {
		switch {
		case slices.Contains(transacts, s.operation):
			return p.refuse(engine.Cancelled(len(p.touches), s.hits, "TransactionConflict", engine.ConflictMessage))
		case s.operation == "BatchWriteItem":
			return p.withhold(s.hits)
		}
		return p.refuse(&types.TransactionConflictException{Message: aws.String(engine.ConflictMessage)})
	}}
}

// Connection errors in the chain of the SDK's error. The SDK sends the request again.
var (
	errCut  = fmt.Errorf("dynamotest: the connection was cut before the request arrived: %w", io.ErrUnexpectedEOF)
	errLost = fmt.Errorf("dynamotest: the connection was cut before the reply arrived: %w", io.ErrUnexpectedEOF)
)

// CutConnection breaks the connection before the request arrives, so it has no effect.
func CutConnection() Fault {
	return Fault{name: "CutConnection", strike: func(p *plan, _ strike) bool {
		if p.ended() {
			return false
		}
		p.cut = true
		return true
	}}
}

// LoseReply breaks the connection after the call took effect and before the reply arrives. The
// client cannot distinguish this from [CutConnection]. It does not happen to calls that another
// fault refuses.
func LoseReply() Fault {
	return Fault{name: "LoseReply", strike: func(p *plan, _ strike) bool {
		if p.ended() {
			return false
		}
		p.loseReply = true
		return true
	}}
}

// Pause makes a call wait before it reaches the database, while pause runs. If the context of the
// client ends meanwhile, the call has no effect; pause itself may cancel it. See [Hold] for pause.
func Pause(pause func(context.Context)) Fault {
	mustBe(pause != nil, "Pause(nil): it needs something to do")
	return Fault{name: "Pause", waits: true, strike: func(p *plan, s strike) bool {
		p.before = append(p.before, func(ctx context.Context) { s.pause(ctx, pause) })
		return true
	}}
}

// PauseReply makes a call wait after it took effect and before the reply reaches the client, while
// pause runs. If the context of the client ends meanwhile, the client gets no reply. It does not
// happen to calls that another fault refuses. See [Hold] for pause.
func PauseReply(pause func(context.Context)) Fault {
	mustBe(pause != nil, "PauseReply(nil): it needs something to do")
	return Fault{name: "PauseReply", waits: true, strike: func(p *plan, s strike) bool {
		p.replied = append(p.replied, func(ctx context.Context) { s.pause(ctx, pause) })
		return true
	}}
}

// Latency delays a call by a random time between least and most, before the call takes effect. It
// uses the clock of the machine. If the context of the client ends before that, the call has no
// effect.
func Latency(least, most time.Duration) Fault {
	checkBounds("Latency", least, most)
	return Fault{name: "Latency", strike: func(p *plan, s strike) bool {
		p.delay += between(s.random(), least, most)
		return true
	}}
}

// Unprocessed makes n random items of a batch come back unprocessed, or all if there are fewer.
func Unprocessed(n int) Fault {
	mustBe(n > 0, "Unprocessed(%d): it takes at least one item", n)
	return Fault{name: "Unprocessed", on: batches, strike: func(p *plan, s strike) bool {
		s.random().Shuffle(len(s.hits), func(i, j int) { s.hits[i], s.hits[j] = s.hits[j], s.hits[i] })
		return p.withhold(s.hits[:min(n, len(s.hits))])
	}}
}

// SmallPages ends pages of Query and Scan after at most n items, as DynamoDB does after 1 MB.
func SmallPages(n int) Fault {
	mustBe(n > 0, "SmallPages(%d): a page has at least one item", n)
	return Fault{name: "SmallPages", on: []string{"Query", "Scan"}, strike: func(p *plan, _ strike) bool {
		if p.answered() {
			return false
		}
		if p.page == 0 || n < p.page {
			p.page = n
		}
		return true
	}}
}

// Hide leaves items out of the pages of Query and Scan, for example those that an index does not
// have yet. hidden is called for each item of a page, and must not change it.
func Hide(hidden func(item map[string]types.AttributeValue) bool) Fault {
	mustBe(hidden != nil, "Hide(nil): it needs to know what to hide")
	return Fault{name: "Hide", on: []string{"Query", "Scan"}, strike: func(p *plan, _ strike) bool {
		if p.answered() {
			return false
		}
		p.hidden = append(p.hidden, hidden)
		return true
	}}
}

// DelayIndex makes global indexes lag behind their tables. Each change arrives after a random time
// between least and most, by the database's [Clock]. Changes of one item stay in order, but those
// of different items may not. After the fault is removed, changes that are under way stay delayed.
// The conditions On and Matching cannot be combined with it.
func DelayIndex(least, most time.Duration) Fault {
	checkBounds("DelayIndex", least, most)
	return Fault{name: "DelayIndex", inside: true, delay: func(r *rand.Rand) time.Duration { return between(r, least, most) }}
}

// Hold makes a transaction of writes wait while pause runs, after its conditions were true and
// before anything is written. Meanwhile it holds its items, as in DynamoDB: other writes of them,
// and reads in transactions, fail with a TransactionConflict. Plain reads see the earlier items.
// See [For].
//
// Pause runs in the goroutine that serves the call, so the client waits for it. Its context is the
// client's. It should end when this context ends, and it must return: if it ends the test instead,
// the transaction is not done. It may use the database. Calls with its context do not trigger the
// same Hold again.
func Hold(pause func(context.Context)) Fault {
	mustBe(pause != nil, "Hold(nil): it needs something to do")
	return Fault{name: "Hold", on: []string{"TransactWriteItems"}, waits: true, inside: true, strike: func(p *plan, s strike) bool {
		p.held = append(p.held, func(ctx context.Context) { s.pause(ctx, pause) })
		return true
	}}
}

// Tear makes a transaction of writes wait while pause runs, when some of its items are written and
// others are not. Separate reads see a part of it, which DynamoDB allows. A TransactGetItems of
// items that are not written yet fails with a TransactionConflict. A random part of the items is
// written first. Tear does not happen to a transaction that writes one item. See [Hold] for pause.
func Tear(pause func(context.Context)) Fault {
	mustBe(pause != nil, "Tear(nil): it needs something to do")
	return Fault{name: "Tear", on: []string{"TransactWriteItems"}, waits: true, inside: true, strike: func(p *plan, s strike) bool {
		in, ok := s.input.(*dynamodb.TransactWriteItemsInput)
		if !ok {
			return false
		}
		var writes, checks []int
		for i, action := range in.TransactItems {
			if action.ConditionCheck != nil {
				checks = append(checks, i)
			} else {
				writes = append(writes, i)
			}
		}
		if len(writes) < 2 {
			return false
		}
		r := s.random()
		r.Shuffle(len(writes), func(i, j int) { writes[i], writes[j] = writes[j], writes[i] })
		after := 1 + r.IntN(len(writes)-1)
		p.order = slices.Concat(writes, checks)
		p.torn = append(p.torn, func(ctx context.Context, written int) {
			if written == after {
				s.pause(ctx, pause)
			}
		})
		return true
	}}
}

// For returns a pause of some time, which ends earlier if the client gives up.
func For(d time.Duration) func(context.Context) {
	return func(ctx context.Context) { _ = sleep(ctx, d) }
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Uint64N(uint64(most-least)+1)) //nolint:gosec // neither is negative
}

func checkBounds(fault string, least, most time.Duration) {
	mustBe(least >= 0 && most >= least, "%s(%v, %v): the bounds must not be negative, and the first must not exceed the second", fault, least, most)
}

// mustBe panics for a mistake in a test. Without the panic, the test would pass without its fault.
func mustBe(right bool, format string, args ...any) {
	if !right {
		panic("dynamotest: " + fmt.Sprintf(format, args...))
	}
}
