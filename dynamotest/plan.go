package dynamotest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// plan holds the faults of one call.
type plan struct {
	// mu guards faults. A late request and the client that gives up both change them.
	mu     sync.Mutex
	faults []string // that have happened

	touches []engine.Touch
	// undescribed maps names of tables to the errors with which they could not be described.
	// touches have no key for items that are put into such a table.
	undescribed map[string]error

	delay     time.Duration
	cut       bool
	refusal   error
	loseReply bool
	late      *lateness
	before    []func(context.Context)
	replied   []func(context.Context)
	hidden    []func(value.Item) bool
	page      int
	throttled []bool // by index in touches, of a batch
	withheld  []bool
	stale     []engine.Staleness
	held      []func(context.Context)
	torn      []func(ctx context.Context, written int)
	order     []int
}

// plan finds the faults that happen to a call. An error means that this cannot be decided.
func (f *injector) plan(ctx context.Context, operation string, in any) (*plan, error) {
	p := &plan{}
	injections := *f.injections.Load()
	if len(injections) == 0 && len(*f.observers.Load()) == 0 {
		return p, nil
	}
	p.touches, p.undescribed = f.to.touches(ctx, in)
	for _, i := range injections {
		if err := i.meet(ctx, p, operation, in); err != nil {
			return p, fmt.Errorf("dynamotest: cannot decide whether %s happens to a %s: %w", i.fault.name, operation, err)
		}
	}
	return p, nil
}

// happens records that a fault happens.
func (p *plan) happens(fault string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fault)
}

// happened returns the names of the faults that have happened so far.
func (p *plan) happened() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.faults)
}

// answered reports whether the call ends without an effect.
func (p *plan) answered() bool { return p.refusal != nil || p.cut }

// ended reports whether a fault has decided how the call ends for the client.
func (p *plan) ended() bool { return p.answered() || p.loseReply || p.late != nil }

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

// throttle withholds items, or refuses the call if all items are throttled.
func (p *plan) throttle(hits []int) bool {
	p.throttled = mark(p.throttled, len(p.touches), hits)
	if !slices.Contains(p.throttled, false) {
		return p.refuse(engine.Throttled(nil))
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

// onTheWay applies the faults before the request reaches the database.
func (p *plan) onTheWay(ctx context.Context) error {
	err := sleep(ctx, p.delay)
	for _, pause := range p.before {
		if err == nil {
			pause(ctx)
			err = ctx.Err()
		}
	}
	switch {
	case err != nil:
		return err
	case p.late != nil && p.late.cuts:
		return errLate
	case p.cut:
		return errCut
	}
	return nil
}

// onTheWayBack applies the faults before the reply reaches the client.
func (p *plan) onTheWayBack(ctx context.Context) error {
	for _, pause := range p.replied {
		pause(ctx)
	}
	if p.loseReply {
		return errLost
	}
	return ctx.Err()
}

// limitPage makes a page smaller if a fault requires this, and reports whether it changed the
// input.
func (p *plan) limitPage(in any) (changed bool) {
	var limit **int32
	switch in := in.(type) {
	case *dynamodb.QueryInput:
		limit = &in.Limit
	case *dynamodb.ScanInput:
		limit = &in.Limit
	}
	if limit == nil || p.page == 0 || *limit != nil && int(**limit) <= p.page {
		return false
	}
	*limit = aws.Int32(int32(p.page)) //nolint:gosec // a test sets it
	return true
}

// hide leaves items out of a page if a fault requires this, and reports whether it changed the
// output.
func (p *plan) hide(out any) (changed bool) {
	var items *[]value.Item
	var count *int32
	switch out := out.(type) {
	case *dynamodb.QueryOutput:
		items, count = &out.Items, &out.Count
	case *dynamodb.ScanOutput:
		items, count = &out.Items, &out.Count
	}
	if p.hidden == nil || items == nil {
		return false
	}
	before := len(*items)
	*items = slices.DeleteFunc(*items, func(item value.Item) bool {
		return slices.ContainsFunc(p.hidden, func(hidden func(value.Item) bool) bool { return hidden(item) })
	})
	left := before - len(*items)
	*count -= int32(left) //nolint:gosec // a page has few items
	return left > 0
}

func (p *plan) interference(ctx context.Context) *engine.Interference {
	if p.withheld == nil && p.held == nil && p.torn == nil && p.stale == nil {
		return nil
	}
	f := &engine.Interference{Withheld: p.withheld, Order: p.order, Stale: p.stale}
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
