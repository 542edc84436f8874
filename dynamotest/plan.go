package dynamotest

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
)

// plan is what faults do to one call.
type plan struct {
	faults  []string // those that happened
	touches []engine.Touch

	delay     time.Duration
	cut       bool
	refusal   error
	loseReply bool
	page      int
	throttled []bool // of touches, in a batch
	withheld  []bool
	held      []func(context.Context)
	torn      []func(ctx context.Context, written int)
	order     []int
}

// plan finds the faults that happen to a call.
func (db *DB) plan(ctx context.Context, operation string, in any) *plan {
	p := &plan{}
	injections := *db.injections.Load()
	if len(injections) == 0 && len(*db.observers.Load()) == 0 {
		return p
	}
	p.touches = db.engine.Touches(in)
	for _, i := range injections {
		i.meet(ctx, p, operation, in)
	}
	return p
}

// answered tells whether the call has come to an end without an effect.
func (p *plan) answered() bool { return p.refusal != nil || p.cut }

// ended tells whether a fault has decided how the call ends for the client.
func (p *plan) ended() bool { return p.answered() || p.loseReply }

func (p *plan) refuse(with error) bool {
	if p.ended() {
		return false
	}
	p.refusal = with
	return true
}

func (p *plan) withhold(hits []int) bool {
	if p.answered() {
		return false
	}
	p.withheld = mark(p.withheld, len(p.touches), hits)
	return true
}

// throttle withholds items, or refuses the call if by now it is all of them.
func (p *plan) throttle(hits []int) bool {
	p.throttled = mark(p.throttled, len(p.touches), hits)
	if !slices.Contains(p.throttled, false) {
		return p.refuse(&types.ProvisionedThroughputExceededException{Message: aws.String(throttled)})
	}
	return p.withhold(hits)
}

func mark(marks []bool, n int, hits []int) []bool {
	if marks == nil {
		marks = make([]bool, n)
	}
	for _, i := range hits {
		marks[i] = true
	}
	return marks
}

// before is what happens on the way to the database.
func (p *plan) before(ctx context.Context) error {
	if err := sleep(ctx, p.delay); err != nil {
		return err
	}
	if p.cut {
		return errCut
	}
	return nil
}

// run makes the call.
func (p *plan) run(ctx context.Context, db *engine.Database, op operation, c *engine.Cost, in any) (any, error) {
	switch in := in.(type) {
	case *dynamodb.QueryInput:
		in.Limit = p.limit(in.Limit)
	case *dynamodb.ScanInput:
		in.Limit = p.limit(in.Limit)
	}
	return op.run(db, c, in, p.interference(ctx))
}

func (p *plan) limit(asked *int32) *int32 {
	if p.page == 0 || asked != nil && int(*asked) <= p.page {
		return asked
	}
	return aws.Int32(int32(p.page)) //nolint:gosec // smaller than what was asked, or chosen by a test
}

func (p *plan) interference(ctx context.Context) *engine.Interference {
	if p.withheld == nil && p.held == nil && p.torn == nil {
		return nil
	}
	f := &engine.Interference{Withheld: p.withheld, Order: p.order}
	if p.held != nil {
		f.Prepared = func() {
			for _, pause := range p.held {
				pause(ctx)
			}
		}
	}
	if p.torn != nil {
		f.Applied = func(written int) {
			for _, pause := range p.torn {
				pause(ctx, written)
			}
		}
	}
	return f
}
