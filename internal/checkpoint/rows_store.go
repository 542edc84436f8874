package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// In returns the store of a group whose positions are in rows of a read model, or s if rows is nil.
// Everything else stays in the checkpoint table. Reads of rows cost half a read unit for each 4 KB
// of each row, or one if they are consistent. StorePosition and Advance are not for such a store.
func (s *Store) In(rows *Rows) *Store {
	if rows == nil {
		return s
	}
	in := *s
	in.rows = &RowPositions{Rows: *rows, Client: s.client}
	return &in
}

// readRow reads the position in a row, as ReadPosition does in the checkpoint table.
func (p RowPositions) readRow(ctx context.Context, o RowOf) (position uint64, found bool, err error) {
	out, err := p.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(p.Table), Key: p.Key(o.Aggregate), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return 0, false, p.explain(err)
	}
	if len(out.Item) == 0 {
		return 0, false, nil
	}
	is, err := p.stateOf(o, out.Item)
	if err != nil || is.resets < o.Group.Resets {
		return 0, false, err
	}
	return is.number, is.found, nil
}

// putItem returns the write of PutPosition for a row that was claimed. For position 0 it empties
// the row, which then is as before the first event.
func (r Rows) putItem(o RowOf, to uint64) types.TransactWriteItem {
	condition := aws.String(rowNotNewer)
	if to > 0 {
		values := o.values()
		values[":millrace_to"] = number(to)
		return types.TransactWriteItem{Update: &types.Update{
			TableName: aws.String(r.Table), Key: r.Key(o.Aggregate),
			UpdateExpression:                    aws.String("SET millrace_epoch = :millrace_e, millrace_number = :millrace_to"),
			ConditionExpression:                 condition,
			ExpressionAttributeValues:           values,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}
	}
	row := r.empty(o)
	row[rowNumber] = number(to)
	return types.TransactWriteItem{Put: &types.Put{
		TableName: aws.String(r.Table), Item: row,
		ConditionExpression:                 condition,
		ExpressionAttributeValues:           o.values(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// refusedSkip returns the error of a skip whose condition on the row was false.
func (r Rows) refusedSkip(o RowOf, old item, to uint64) error {
	err := r.Refused(o, old, to)
	if err == nil || errors.Is(err, ErrMoved) || errors.Is(err, ErrRowGone) {
		return errResolve
	}
	return err
}

// rowPositions reads the positions in rows, as Positions does in the checkpoint table.
func (s *Store) rowPositions(ctx context.Context, k Shard, ids []aggregate.ID, consistent bool) (map[aggregate.ID]uint64, error) {
	positions := map[aggregate.ID]uint64{}
	err := s.eachRow(ctx, ids, consistent, func(id aggregate.ID, row item) error {
		position, found, err := s.rows.positionOf(k.Group, id, row)
		if found {
			positions[id] = position
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read positions of %s: %w", k.partition(), err)
	}
	return positions, nil
}

// eachRow reads the rows of aggregates of one topic. It does not call see for missing rows.
func (s *Store) eachRow(ctx context.Context, ids []aggregate.ID, consistent bool, see func(aggregate.ID, item) error) error {
	for some := range slices.Chunk(ids, maxKeys) {
		keys := make([]item, len(some))
		for i, id := range some {
			keys[i] = s.rows.Key(id)
		}
		rows, err := s.batchGetIn(ctx, s.rows.Table, types.KeysAndAttributes{
			Keys: keys, ConsistentRead: &consistent,
			ProjectionExpression:     aws.String("#millrace_k, millrace_group, millrace_resets, millrace_epoch, millrace_number"),
			ExpressionAttributeNames: s.rows.keyName(),
		}, s.rows.explain)
		if err != nil {
			return err
		}
		for _, row := range rows {
			value := strings.TrimPrefix(textOf(row[s.rows.PartitionKey]), s.rows.Prefix)
			if err := see(aggregate.ID{Type: some[0].Type, Value: value}, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// claimedRows does for rows what ClaimedPositions does for the checkpoint table. It reads all heads
// of the shard with strong consistency, and the row of each aggregate.
func (s *Store) claimedRows(ctx context.Context, k Shard, from, to uint64) iter.Seq2[[]aggregate.ID, error] {
	return func(yield func([]aggregate.ID, error) bool) {
		q := storage.HeadsOfShard{AggregateType: k.Topic, Shard: k.Number, Consistent: true}
		for heads, err := range s.journal.Raw().ShardHeads(ctx, q, func(*journal.CorruptItemError) {}) {
			var claimed []aggregate.ID
			if err == nil {
				err = s.eachRow(ctx, idsOf(heads), true, func(id aggregate.ID, row item) error {
					own, err := isOf(k.Group, id, row)
					if err != nil {
						return err
					}
					epoch, err := uintOf(row[rowEpoch])
					if own && from <= epoch && epoch <= to {
						claimed = append(claimed, id)
					}
					return err
				})
			}
			if !yield(claimed, err) || err != nil {
				return
			}
		}
	}
}

// withoutRow returns the aggregates of some heads whose rows the group has not claimed.
func (s *Store) withoutRow(ctx context.Context, k Shard, heads []journal.Head) (ids []aggregate.ID, err error) {
	claimed := map[aggregate.ID]bool{}
	err = s.eachRow(ctx, idsOf(heads), true, func(id aggregate.ID, row item) error {
		own, err := isOf(k.Group, id, row)
		claimed[id] = own
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read positions of %s: %w", k.partition(), err)
	}
	for _, id := range idsOf(heads) {
		if !claimed[id] {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func idsOf(heads []journal.Head) []aggregate.ID {
	ids := make([]aggregate.ID, len(heads))
	for i, head := range heads {
		ids[i] = head.Aggregate
	}
	return ids
}

// value returns the description as an attribute of the membership.
func (r *Rows) value() types.AttributeValue {
	m := item{attrRowTable: text(r.Table), attrRowKey: text(r.PartitionKey)}
	for name, value := range map[string]string{attrRowPrefix: r.Prefix, attrRowSortKey: r.SortKey, attrRowSort: r.Sort} {
		if value != "" {
			m[name] = text(value)
		}
	}
	return &types.AttributeValueMemberM{Value: m}
}

const (
	attrRowTable   = "table"
	attrRowKey     = "partition_key"
	attrRowPrefix  = "prefix"
	attrRowSortKey = "sort_key"
	attrRowSort    = "sort"
)

// rowsOf reverses Rows.value. It returns nil for an absent attribute.
func rowsOf(v types.AttributeValue) (*Rows, error) {
	if v == nil {
		return nil, nil
	}
	m, _ := v.(*types.AttributeValueMemberM)
	if m == nil || textOf(m.Value[attrRowTable]) == "" || textOf(m.Value[attrRowKey]) == "" {
		return nil, fmt.Errorf("%w: it does not say which table has the rows of its positions", ErrCorrupt)
	}
	return &Rows{
		Table: textOf(m.Value[attrRowTable]), PartitionKey: textOf(m.Value[attrRowKey]), Prefix: textOf(m.Value[attrRowPrefix]),
		SortKey: textOf(m.Value[attrRowSortKey]), Sort: textOf(m.Value[attrRowSort]),
	}, nil
}

// String returns the description for people.
func (r *Rows) String() string {
	if r == nil {
		return "no rows of a read model"
	}
	s := fmt.Sprintf("rows of table %q, %s = %q + id", r.Table, r.PartitionKey, r.Prefix)
	if r.SortKey != "" {
		s += fmt.Sprintf(", %s = %q", r.SortKey, r.Sort)
	}
	return s
}

// MayHold reports whether a member may join that keeps its positions in rows, or in another place
// if rows is nil. A group that has positions at one place cannot change to another one: its cursor
// has passed the events up to these positions, so a search at the other place would miss them.
func (r Membership) MayHold(rows *Rows) bool {
	if !r.Exists() || r.Rows == nil && rows == nil || r.Rows != nil && rows != nil && *r.Rows == *rows {
		return true
	}
	for _, m := range r.Members {
		if m.Shares() {
			return false
		}
	}
	for _, epoch := range r.Epochs {
		if epoch != r.Base {
			return false
		}
	}
	return true
}
