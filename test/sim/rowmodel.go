package sim

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
)

// rowTable has the rows of a read model that is built again, if the rows are the positions of its
// group. Each generation of the handlers keeps its counts in attributes of its own.
var rowTable = projection.RowTable{Table: projection.Table{Name: "rows", PartitionKey: "id"}, Prefix: rebuiltGroup + "/"}

// rowEffects returns a projection to rows that counts events as effects does.
func rowEffects(client projection.RowClient, generation int) (*projection.Rows, error) {
	return projection.NewBatchRows(client, rowTable, projection.Config{RetryBudget: time.Second},
		func(_ context.Context, sum [2]uint64, _ projection.Run) (projection.RowUpdate, error) {
			return projection.RowUpdate{
				Expression: "ADD #n :n, #s :s",
				Names:      map[string]string{"#n": countOf(generation), "#s": sumOf(generation)},
				Values:     map[string]types.AttributeValue{":n": numberValue(sum[0]), ":s": numberValue(sum[1])},
			}, nil
		},
		projection.Fold(func(sum *[2]uint64, _ happened, r *journal.Record) error {
			sum[0], sum[1] = sum[0]+1, sum[1]+r.Number
			return nil
		}))
}

func countOf(generation int) string { return fmt.Sprint("n", generation) }
func sumOf(generation int) string   { return fmt.Sprint("s", generation) }

// rebuildRows resets or removes the group, whose next members are of another generation. The rows
// stay: the next generation empties each when it first handles the aggregate. While the group is
// idle, no content may change. A claim may still arrive, which is harmless.
func (r *rebuilder) rebuildRows(ctx context.Context) {
	before := r.allRows(ctx)
	pauseFor(ctx, between(r.random, time.Second, longestLateness))
	for id, row := range r.allRows(ctx) {
		if was, is := contentOf(before[id]), contentOf(row); !maps.Equal(was, is) && ctx.Err() == nil {
			r.world.oracle.find(Effect, "row %s has changed while the group was idle, from %v to %v", id, was, is)
		}
	}
	for _, l := range r.members {
		l.closeRebuilt()
	}
	r.members = nil
	if r.random.IntN(2) == 0 {
		r.world.oracle.note("rebuild of rows by a reset", rebuiltGroup)
		r.insist(ctx, func() error { return r.reset(ctx) })
	} else {
		r.world.oracle.note("rebuild of rows by a removal", rebuiltGroup)
		r.insist(ctx, func() error { return r.removeGroup(ctx) })
	}
	r.generation++
}

func (r *rebuilder) allRows(ctx context.Context) map[string]map[string]types.AttributeValue {
	rows := map[string]map[string]types.AttributeValue{}
	r.insist(ctx, func() error {
		return scan(ctx, r.world.clean, rowTable.Table.Name, func(row map[string]types.AttributeValue) { rows[text(row["id"])] = maps.Clone(row) })
	})
	return rows
}

// rowOf returns the numbers of a row.
func rowOf(row map[string]types.AttributeValue) map[string]uint64 {
	numbers := map[string]uint64{}
	for name, value := range row {
		if _, ok := value.(*types.AttributeValueMemberN); ok {
			numbers[name] = number(value)
		}
	}
	return numbers
}

// contentOf returns the numbers of a row without those that identify its owner.
func contentOf(row map[string]types.AttributeValue) map[string]uint64 {
	numbers := rowOf(row)
	delete(numbers, "millrace_epoch")
	delete(numbers, "millrace_resets")
	return numbers
}

// inspectRows compares the content of each row with its number at the end. It must be that of one
// generation. If events were removed, some effects may be missing.
func (w *world) inspectRows(ctx context.Context, heads map[stream]uint64) error {
	return scan(ctx, w.clean, rowTable.Table.Name, func(row map[string]types.AttributeValue) {
		id := strings.TrimPrefix(text(row["id"]), rowTable.Prefix)
		at := number(row["millrace_number"])
		if head := heads[stream{topic: w.plan.topics[0], id: id}]; at > head && w.plan.disruption.removals() == nil {
			w.oracle.find(Effect, "row %s is at %d, beyond the last event %d", id, at, head)
		}
		n, sum := allHappened(at)
		var got [2]uint64
		generations := 0
		for name := range row {
			var generation int
			if _, err := fmt.Sscanf(name, "n%d", &generation); err == nil {
				generations++
				got = [2]uint64{number(row[countOf(generation)]), number(row[sumOf(generation)])}
			}
		}
		w.oracle.count("rebuilt effects of rows", int(got[0])) //nolint:gosec // a world has few
		wrong := got != [2]uint64{n, sum}
		if w.plan.disruption.removals() != nil {
			wrong = got[0] > n || got[1] > sum
		}
		if wrong || generations > 1 {
			w.oracle.find(Effect, "row %s at %d has %d effects with the sum %d, not %d with %d: %v", id, at, got[0], got[1], n, sum, rowOf(row))
		}
	})
}

// spoilRow removes a part of the condition of a write to a row.
func (s Sabotage) spoilRow(u *dynamodb.UpdateItemInput) {
	condition := aws.ToString(u.ConditionExpression)
	switch s {
	case Unstamp:
		condition = strings.ReplaceAll(condition, "millrace_epoch = :millrace_e", "(millrace_epoch <= :millrace_e OR millrace_epoch > :millrace_e)")
		condition = strings.ReplaceAll(condition, "millrace_epoch <= :millrace_e AND", "(millrace_epoch <= :millrace_e OR millrace_epoch > :millrace_e) AND")
	case Inherit:
		condition = strings.ReplaceAll(condition, "millrace_resets = :millrace_r", "(millrace_resets <= :millrace_r OR millrace_resets > :millrace_r)")
	}
	u.ConditionExpression = &condition
}
