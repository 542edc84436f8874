package dynamotest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
)

// plan is what faults do to one call.
type plan struct {
	name    string          // of the faults
	ctx     context.Context //nolint:containedctx // for the pauses of one call
	touches []engine.Touch

	delay     time.Duration
	cut       bool
	refusal   error
	loseReply bool
	page      int
	withheld  []bool // of touches; nil for none
	pauses    *engine.Pauses
}

// plan finds the faults that happen to a call.
func (db *DB) plan(operation string, in any) *plan {
	p := &plan{}
	injections := *db.injections.Load()
	if len(injections) == 0 && len(*db.observers.Load()) == 0 {
		return p
	}
	p.touches = db.engine.Touches(in)
	p.pauses = &engine.Pauses{}
	for _, i := range injections {
		hits, random, ok := i.hits(operation, in, p.touches)
		if !ok {
			continue
		}
		if p.name != "" {
			p.name += ", "
		}
		p.name += i.fault.name
		i.fault.strike(p, strike{operation, hits, random})
	}
	if p.pauses.Prepared == nil && p.pauses.Applied == nil {
		p.pauses = nil
	}
	return p
}

func (p *plan) refuse(with error) {
	if p.refusal == nil {
		p.refusal = with
	}
}

func (p *plan) withhold(hits []int) {
	if p.withheld == nil {
		p.withheld = make([]bool, len(p.touches))
	}
	for _, i := range hits {
		p.withheld[i] = true
	}
}

// before is what happens on the way to the database.
func (p *plan) before(ctx context.Context) error {
	p.ctx = ctx
	if err := sleep(ctx, p.delay); err != nil {
		return err
	}
	if p.cut {
		return errCut
	}
	return nil
}

// run makes the call, or the part of it that faults leave.
func (p *plan) run(db *engine.Database, op operation, c *engine.Cost, in any) (any, error) {
	switch in := in.(type) {
	case *dynamodb.QueryInput:
		in.Limit = p.limit(in.Limit)
	case *dynamodb.ScanInput:
		in.Limit = p.limit(in.Limit)
	case *dynamodb.BatchGetItemInput:
		if p.withheld != nil {
			return p.batchGet(db, c, in)
		}
	case *dynamodb.BatchWriteItemInput:
		if p.withheld != nil {
			return p.batchWrite(db, c, in)
		}
	}
	return op.run(db, c, in, p)
}

func (p *plan) limit(asked *int32) *int32 {
	if p.page == 0 || asked != nil && int(*asked) <= p.page {
		return asked
	}
	page := int32(p.page) //nolint:gosec // smaller than what was asked, or chosen by a test
	return &page
}

func (p *plan) batchGet(db *engine.Database, c *engine.Cost, in *dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
	kept, left := map[string]types.KeysAndAttributes{}, map[string]types.KeysAndAttributes{}
	n := 0
	for _, table := range slices.Sorted(maps.Keys(in.RequestItems)) {
		ask := in.RequestItems[table]
		keys := ask.Keys
		for _, key := range keys {
			to := kept
			if p.withheld[n] {
				to = left
			}
			if one, ok := to[table]; ok {
				one.Keys = append(one.Keys, key)
				to[table] = one
			} else {
				ask.Keys = []map[string]types.AttributeValue{key}
				to[table] = ask
			}
			n++
		}
	}
	out := &dynamodb.BatchGetItemOutput{
		Responses: map[string][]map[string]types.AttributeValue{}, UnprocessedKeys: map[string]types.KeysAndAttributes{},
	}
	if len(kept) > 0 {
		in.RequestItems = kept
		var err error
		if out, err = db.BatchGetItem(c, in); err != nil {
			return nil, err
		}
	}
	for table, ask := range left {
		ask.Keys = append(ask.Keys, out.UnprocessedKeys[table].Keys...)
		out.UnprocessedKeys[table] = ask
	}
	return out, nil
}

func (p *plan) batchWrite(db *engine.Database, c *engine.Cost, in *dynamodb.BatchWriteItemInput) (*dynamodb.BatchWriteItemOutput, error) {
	kept, left := map[string][]types.WriteRequest{}, map[string][]types.WriteRequest{}
	n := 0
	for _, table := range slices.Sorted(maps.Keys(in.RequestItems)) {
		for _, request := range in.RequestItems[table] {
			to := kept
			if p.withheld[n] {
				to = left
			}
			to[table] = append(to[table], request)
			n++
		}
	}
	out := &dynamodb.BatchWriteItemOutput{UnprocessedItems: map[string][]types.WriteRequest{}}
	if len(kept) > 0 {
		in.RequestItems = kept
		var err error
		if out, err = db.BatchWriteItem(c, in); err != nil {
			return nil, err
		}
	}
	for table, requests := range left {
		out.UnprocessedItems[table] = append(out.UnprocessedItems[table], requests...)
	}
	return out, nil
}
