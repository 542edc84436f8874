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

// Fault is something that DynamoDB, or the network on the way to it, does to a call. Inject of a
// [DB] or a [Proxy] puts it in place.
type Fault struct {
	name string
	on   []string // operations that it can happen to; nil for all
	// pushesBack is whether what happens to an index happens to writes of its table.
	pushesBack bool
	waits      bool // it happens, if at all, when it comes to its pause
	inside     bool // the database, so that a Proxy cannot do it
	// strike makes the fault happen to a call, and reports whether it can.
	strike func(p *plan, s strike) bool
	delay  func(*rand.Rand) time.Duration // of a change on its way to an index
}

// strike is a fault that is about to happen to a call.
type strike struct {
	by        *Injection
	operation string
	input     any
	hits      []int // of the plan's touches
	random    func() *rand.Rand
	// pause is what a fault that waits does when it comes to that.
	pause func(ctx context.Context, do func(context.Context))
}

var (
	itemWrites = []string{"PutItem", "UpdateItem", "DeleteItem"}
	batches    = []string{"BatchGetItem", "BatchWriteItem"}
	transacts  = []string{"TransactGetItems", "TransactWriteItems"}
)

// Throttle refuses a call for lack of throughput, with a ProvisionedThroughputExceededException.
// What is hit of a batch comes back unprocessed, unless it is all; a transaction is cancelled with
// the reason ProvisionedThroughputExceeded, which the SDK does not retry. With [Index] it hits
// reads of the index and writes of its table, as a throttled index pushes back on those.
// [PartitionLimits] throttles calls that are too many.
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

// InternalError refuses a call with an InternalServerError, without an effect. For one with an
// effect see [LoseReply].
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

// Conflict makes a write, or a read in a transaction, meet another transaction on its items, as if
// that one were just under way: a TransactionConflictException, which the SDK does not retry; a
// transaction that is cancelled with the reason TransactionConflict; an unprocessed write of a
// batch. It does not happen to other calls. [Hold] makes transactions meet that are really there.
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

// Errors of a connection, as the SDK finds them in the chain of what it returns. It sends the
// request again.
var (
	errCut  = fmt.Errorf("dynamotest: the connection was cut before the request arrived: %w", io.ErrUnexpectedEOF)
	errLost = fmt.Errorf("dynamotest: the connection was cut before the reply arrived: %w", io.ErrUnexpectedEOF)
)

// CutConnection breaks the connection before the request arrives: it has no effect.
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
// client cannot tell it from [CutConnection]. It does not happen to calls that another fault
// refuses.
func LoseReply() Fault {
	return Fault{name: "LoseReply", strike: func(p *plan, _ strike) bool {
		if p.ended() {
			return false
		}
		p.loseReply = true
		return true
	}}
}

// Pause makes a call wait, while pause runs, before it reaches the database. If the client's
// context ends meanwhile, which pause itself may arrange, the call has no effect. For pause see
// [Hold].
func Pause(pause func(context.Context)) Fault {
	mustBe(pause != nil, "Pause(nil): it needs something to do")
	return Fault{name: "Pause", waits: true, strike: func(p *plan, s strike) bool {
		p.before = append(p.before, func(ctx context.Context) { s.pause(ctx, pause) })
		return true
	}}
}

// PauseReply makes a call wait, while pause runs, after it took effect and before the reply reaches
// the client. If the client's context ends meanwhile, it gets no reply. It does not happen to calls
// that another fault refuses. For pause see [Hold].
func PauseReply(pause func(context.Context)) Fault {
	mustBe(pause != nil, "PauseReply(nil): it needs something to do")
	return Fault{name: "PauseReply", waits: true, strike: func(p *plan, s strike) bool {
		p.replied = append(p.replied, func(ctx context.Context) { s.pause(ctx, pause) })
		return true
	}}
}

// Latency delays a call by a time between two bounds. It is spent by the clock of the machine,
// before the call takes effect; if the client's context ends before it is over, the call has none.
func Latency(least, most time.Duration) Fault {
	checkBounds("Latency", least, most)
	return Fault{name: "Latency", strike: func(p *plan, s strike) bool {
		p.delay += between(s.random(), least, most)
		return true
	}}
}

// Unprocessed makes n items of a batch come back unprocessed, drawn at random, or all if there are
// fewer.
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

// Hide leaves items out of the pages of Query and Scan, such as those that an index does not have
// yet. The function is called for each item that a page has, and must not change it.
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

// DelayIndex makes global indexes lag behind their tables: each change arrives after a time between
// two bounds, by the database's [Clock]. Changes of one item stay in order, those of different
// items need not. A change that is on its way stays so when the fault is removed. Of the conditions
// of [DB.Inject], On and Matching do not go with it.
func DelayIndex(least, most time.Duration) Fault {
	checkBounds("DelayIndex", least, most)
	return Fault{name: "DelayIndex", inside: true, delay: func(r *rand.Rand) time.Duration { return between(r, least, most) }}
}

// Hold makes a transaction of writes wait, while pause runs, after its conditions were found true
// and before anything is written. Meanwhile it holds its items as in DynamoDB: other writes of
// them, and reads in transactions, meet a TransactionConflict; plain reads see what was there
// before. See [For].
//
// Pause runs in the goroutine that serves the call, so the client waits for it; it should end when
// its context does, which is the client's, and it must return: one that ends the test instead
// leaves the transaction undone. It may use the database. Calls with its context do not meet the
// same Hold again.
func Hold(pause func(context.Context)) Fault {
	mustBe(pause != nil, "Hold(nil): it needs something to do")
	return Fault{name: "Hold", on: []string{"TransactWriteItems"}, waits: true, inside: true, strike: func(p *plan, s strike) bool {
		p.held = append(p.held, func(ctx context.Context) { s.pause(ctx, pause) })
		return true
	}}
}

// Tear makes a transaction of writes wait, while pause runs, when some of its items are written and
// others are not. Separate reads see it in part, which DynamoDB allows; TransactGetItems of what is
// not written meets a TransactionConflict. Which items are written first is drawn at random. It
// does not happen to a transaction that writes one item. For pause see [Hold].
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

// For is a pause of some time, or until the client has gone.
func For(d time.Duration) func(context.Context) {
	return func(ctx context.Context) { _ = sleep(ctx, d) }
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Uint64N(uint64(most-least)+1)) //nolint:gosec // neither is negative
}

func checkBounds(fault string, least, most time.Duration) {
	mustBe(least >= 0 && most >= least, "%s(%v, %v): the bounds are the least and the most, and not negative", fault, least, most)
}

// mustBe panics for a mistake in a test, which would otherwise pass for lack of its fault.
func mustBe(right bool, format string, args ...any) {
	if !right {
		panic("dynamotest: " + fmt.Sprintf(format, args...))
	}
}
