package dynamotest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
)

// Fault is something that DynamoDB, or the network on the way to it, does to a call. [DB.Inject] puts it in place.
type Fault struct {
	name   string
	on     []string // operations that it can happen to; nil for all
	strike func(p *plan, s strike)
	delay  func(*rand.Rand) time.Duration // of a change on its way to an index
}

// strike is a fault that happens to a call.
type strike struct {
	operation string
	hits      []int // of the plan's touches
	random    func() *rand.Rand
}

// all tells whether the fault concerns all that the request names.
func (s strike) all(p *plan) bool { return len(s.hits) == len(p.touches) }

var (
	itemWrites = []string{"PutItem", "UpdateItem", "DeleteItem"}
	batches    = []string{"BatchGetItem", "BatchWriteItem"}
	transacts  = []string{"TransactGetItems", "TransactWriteItems"}
)

// Throttle refuses a call for lack of throughput, with a ProvisionedThroughputExceededException. What is hit of a
// batch comes back unprocessed, unless it is all; a transaction is cancelled with the reason
// ProvisionedThroughputExceeded.
func Throttle() Fault {
	const message = "The level of configured provisioned throughput for the table was exceeded. " +
		"Consider increasing your provisioning level with the UpdateTable API."
	return Fault{name: "Throttle", strike: func(p *plan, s strike) {
		switch {
		case slices.Contains(transacts, s.operation):
			p.refuse(engine.Cancelled(len(p.touches), s.hits, "ProvisionedThroughputExceeded", message))
		case slices.Contains(batches, s.operation) && !s.all(p):
			p.withhold(s.hits)
		default:
			p.refuse(&types.ProvisionedThroughputExceededException{Message: aws.String(message)})
		}
	}}
}

// InternalError refuses a call with an InternalServerError, without an effect. For one with an effect see
// [LoseReply].
func InternalError() Fault {
	return Fault{name: "InternalError", strike: func(p *plan, _ strike) {
		p.refuse(&types.InternalServerError{Message: aws.String("Internal server error")})
	}}
}

// Refuse refuses a call with any error of the API, such as &types.RequestLimitExceeded{}.
func Refuse(with smithy.APIError) Fault {
	return Fault{name: "Refuse(" + with.ErrorCode() + ")", strike: func(p *plan, _ strike) { p.refuse(with) }}
}

// Conflict makes a write, or a read in a transaction, meet another transaction on its items, as if that one were
// just under way: a TransactionConflictException, a transaction that is cancelled with the reason
// TransactionConflict, an unprocessed write of a batch. It can not happen to other calls. [Hold] makes transactions
// meet that are really there.
func Conflict() Fault {
	on := append(slices.Concat(itemWrites, transacts), "BatchWriteItem")
	return Fault{name: "Conflict", on: on, strike: func(p *plan, s strike) {
		switch {
		case slices.Contains(transacts, s.operation):
			p.refuse(engine.Cancelled(len(p.touches), s.hits, "TransactionConflict", engine.ConflictMessage))
		case s.operation == "BatchWriteItem":
			p.withhold(s.hits)
		default:
			p.refuse(&types.TransactionConflictException{Message: aws.String(engine.ConflictMessage)})
		}
	}}
}

// Errors of a connection, as the SDK finds them in the chain of what it returns. It sends the request again.
var (
	errCut  = fmt.Errorf("dynamotest: the connection was cut before the request arrived: %w", io.ErrUnexpectedEOF)
	errLost = fmt.Errorf("dynamotest: the connection was cut before the reply arrived: %w", io.ErrUnexpectedEOF)
)

// CutConnection breaks the connection before the request arrives: it has no effect.
func CutConnection() Fault {
	return Fault{name: "CutConnection", strike: func(p *plan, _ strike) { p.cut = true }}
}

// LoseReply breaks the connection after the call took effect and before the reply arrives. The client can not
// tell it from [CutConnection].
func LoseReply() Fault {
	return Fault{name: "LoseReply", strike: func(p *plan, _ strike) { p.loseReply = true }}
}

// Latency delays a call by a time between two bounds. It is spent by the clock of the machine, before the call
// takes effect; if the client's context ends before it is over, the call has none.
func Latency(least, most time.Duration) Fault {
	return Fault{name: "Latency", strike: func(p *plan, s strike) { p.delay += between(s.random(), least, most) }}
}

// Unprocessed makes n items of a batch come back unprocessed, drawn at random, or all if there are fewer.
func Unprocessed(n int) Fault {
	return Fault{name: "Unprocessed", on: batches, strike: func(p *plan, s strike) {
		s.random().Shuffle(len(s.hits), func(i, j int) { s.hits[i], s.hits[j] = s.hits[j], s.hits[i] })
		p.withhold(s.hits[:min(max(n, 0), len(s.hits))])
	}}
}

// SmallPages ends pages of Query and Scan after at most n items, as DynamoDB does after 1 MB.
func SmallPages(n int) Fault {
	return Fault{name: "SmallPages", on: []string{"Query", "Scan"}, strike: func(p *plan, _ strike) {
		p.page = max(1, n)
	}}
}

// DelayIndex makes global indexes lag behind their tables: each change arrives after a time between two bounds, by
// the database's [Clock]. Changes of one item stay in order, those of different items need not. Of the conditions
// of [DB.Inject], On does not apply to it.
func DelayIndex(least, most time.Duration) Fault {
	return Fault{name: "DelayIndex", delay: func(r *rand.Rand) time.Duration { return between(r, least, most) }}
}

// Hold makes a transaction of writes wait, while pause runs, after its conditions were found true and before
// anything is written. Meanwhile it holds its items as in DynamoDB: other writes of them, and reads in
// transactions, meet a TransactionConflict; plain reads see what was there before. See [For].
func Hold(pause func(context.Context)) Fault {
	return Fault{name: "Hold", on: []string{"TransactWriteItems"}, strike: func(p *plan, _ strike) {
		p.pauses.Prepared = func() { pause(p.ctx) }
	}}
}

// Tear makes a transaction of writes wait, while pause runs, when some of its actions are written and others are
// not. Separate reads see it in part, which DynamoDB allows; TransactGetItems meets a TransactionConflict. How many
// actions are written is drawn at random. It does not happen to a transaction of one action. See [For].
func Tear(pause func(context.Context)) Fault {
	return Fault{name: "Tear", on: []string{"TransactWriteItems"}, strike: func(p *plan, s strike) {
		if len(p.touches) < 2 {
			return
		}
		after := 1 + s.random().IntN(len(p.touches)-1)
		p.pauses.Applied = func(actions int) {
			if actions == after {
				pause(p.ctx)
			}
		}
	}}
}

// For is a pause of some time, or until the client has gone.
func For(d time.Duration) func(context.Context) {
	return func(ctx context.Context) { _ = sleep(ctx, d) }
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}
