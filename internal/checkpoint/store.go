package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// ErrFenced reports that another member of the group has taken over.
var ErrFenced = errors.New("fenced: another member of the consumer group has taken over")

// ErrCorrupt reports a row of the checkpoint table that this package cannot have written.
var ErrCorrupt = errors.New("corrupt checkpoint row")

// Attributes of the rows.
const (
	attrEpoch      = "epoch"
	attrPosition   = "position"
	attrHead       = "head"
	attrCursor     = "occurred_at"
	attrReconciled = "reconciled_at"
	// where a reconciliation was interrupted, as JSON
	attrReconciling = "reconciling"
	attrParkedAt    = "parked_at"
	attrFailedAt    = "failed_at"
	attrNumber      = "number"
	attrReason      = "reason"
	attrRevision    = "revision"

	attrSkippedAt = "skipped_at"
	attrStoppedAt = "stopped_at"
	attrEventType = "event_type"

	attrDue      = "due_at"
	attrBegun    = "begun"
	attrAttempts = "attempts"
	attrPart     = "part"
)

type item = map[string]types.AttributeValue

// Store reads and writes the checkpoint table of a journal.
type Store struct {
	journal *engine.Engine
	client  journal.Client
	table   string
	keys    journal.Attributes
	rows    *RowPositions // nil if the positions are in the checkpoint table
}

// New returns the store of a journal's checkpoint table.
func New(j *journal.Journal) *Store {
	e := j.Internal()
	return &Store{journal: e, client: e.Bounded(), table: e.Config.Tables.Checkpoint, keys: e.Config.Attributes}
}

// Start returns the start time of a group that asks for the time t. It rounds t down to the unit of
// the journal's times, at least to milliseconds.
func (s *Store) Start(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Truncate(max(time.Millisecond, s.journal.Config.OccurredAtUnit))
}

// Group identifies the positions of a consumer group between two resets.
type Group struct {
	Name string
	// Resets counts the resets of the group. After a reset the group has no positions.
	Resets uint64
}

// Shard identifies a logical shard of a group.
type Shard struct {
	Group  Group
	Topic  string
	Number int
}

func (k Shard) partition() string {
	partition := k.Group.Name + "/" + storage.ShardKey(k.Topic, k.Number)
	if k.Group.Resets > 0 {
		partition += "/" + strconv.FormatUint(k.Group.Resets, 10)
	}
	return partition
}

func (s *Store) shardOf(group Group, id aggregate.ID) Shard {
	return Shard{Group: group, Topic: id.Type, Number: s.journal.Shard(id)}
}

func (s *Store) key(partition, sort string) item {
	return item{
		s.keys.PartitionKey: &types.AttributeValueMemberS{Value: partition},
		s.keys.SortKey:      &types.AttributeValueMemberS{Value: sort},
	}
}

// update performs a conditional UpdateItem and returns the new row, or what ReturnValues selects.
// If the condition is false, it returns the old row and ErrFenced.
func (s *Store) update(ctx context.Context, in *dynamodb.UpdateItemInput) (item, error) {
	in.TableName = &s.table
	in.ReturnValues = cmp.Or(in.ReturnValues, types.ReturnValueAllNew)
	return updateIf(ctx, s.client, in, s.explain)
}

// updater is the part of a client that updateIf uses.
type updater interface {
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// updateIf performs a conditional UpdateItem. If the condition is false, it returns the old row and
// ErrFenced.
func updateIf(ctx context.Context, client updater, in *dynamodb.UpdateItemInput, explain func(error) error) (item, error) {
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	out, err := client.UpdateItem(ctx, in)
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return out.Attributes, nil
	case errors.As(err, &failed):
		return failed.Item, ErrFenced
	default:
		return nil, explain(err)
	}
}

// remove deletes a row unless it has a newer epoch. It returns ErrFenced if it has.
func (s *Store) remove(ctx context.Context, key item, epoch uint64) error {
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                 &s.table,
		Key:                       key,
		ConditionExpression:       aws.String(notNewer),
		ExpressionAttributeNames:  names(),
		ExpressionAttributeValues: item{":e": number(epoch)},
	})
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return ErrFenced
	}
	if err != nil {
		return s.explain(err)
	}
	return nil
}

func (s *Store) explain(err error) error {
	return fmt.Errorf("checkpoint table %q: %w", s.table, dynamo.Explain(err, s.table))
}

func number[N int | int64 | uint64](n N) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// uintOf returns 0 if the attribute is absent.
func uintOf(v types.AttributeValue) (uint64, error) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		if v == nil {
			return 0, nil
		}
		return 0, fmt.Errorf("%w: an attribute that must be a number is a %T", ErrCorrupt, v)
	}
	u, err := strconv.ParseUint(n.Value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is not a number", ErrCorrupt, n.Value)
	}
	return u, nil
}

func intOf(v types.AttributeValue) (int, error) {
	u, err := uintOf(v)
	return int(min(u, math.MaxInt32)), err //nolint:gosec // it fits
}

// timeOf returns the zero time if the attribute is absent.
func timeOf(v types.AttributeValue) (time.Time, error) {
	if v == nil {
		return time.Time{}, nil
	}
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return time.Time{}, fmt.Errorf("%w: an attribute that must be a time is a %T", ErrCorrupt, v)
	}
	ms, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %q is not a time in milliseconds", ErrCorrupt, n.Value)
	}
	return time.UnixMilli(ms), nil
}

const notNewer = "(attribute_not_exists(#e) OR #e <= :e)"

func names(pairs ...string) map[string]string {
	m := map[string]string{"#e": attrEpoch}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}
