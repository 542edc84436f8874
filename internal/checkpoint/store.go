package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/journal"
)

// ErrFenced means that another member of the group has taken over.
var ErrFenced = errors.New("fenced: another member of the consumer group has taken over")

// Attributes of the rows.
const (
	attrEpoch    = "epoch"
	attrOwner    = "owner"
	attrBeat     = "beat"
	attrPosition = "position"
	attrHead     = "head"
	attrCursor   = "occurred_at"
)

type item = map[string]types.AttributeValue

// Store reads and writes the checkpoint table of a journal.
type Store struct {
	journal *journal.Journal
	client  journal.Client
	table   string
	keys    journal.Attributes
}

// New gives the store of a journal's checkpoint table.
func New(j *journal.Journal) *Store {
	c := j.Config()
	return &Store{journal: j, client: j.Client(), table: c.Tables.Checkpoint, keys: c.Attributes}
}

func (s *Store) key(partition, sort string) item {
	return item{
		s.keys.PartitionKey: &types.AttributeValueMemberS{Value: partition},
		s.keys.SortKey:      &types.AttributeValueMemberS{Value: sort},
	}
}

// update is a conditional UpdateItem that gives the row as it is afterwards, or, where the
// condition is false, ErrFenced and the row as it was.
func (s *Store) update(ctx context.Context, in *dynamodb.UpdateItemInput) (item, error) {
	in.TableName = &s.table
	in.ReturnValues = types.ReturnValueAllNew
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	out, err := s.client.UpdateItem(ctx, in)
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return out.Attributes, nil
	case errors.As(err, &failed):
		return failed.Item, ErrFenced
	default:
		return nil, s.explain(err)
	}
}

func (s *Store) explain(err error) error {
	return fmt.Errorf("checkpoint table %q: %w", s.table, journal.Explain(err, s.table))
}

func number[N int64 | uint64](n N) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// uintOf gives 0 for an attribute that is absent.
func uintOf(v types.AttributeValue) uint64 {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	u, err := strconv.ParseUint(n.Value, 10, 64)
	if err != nil {
		return 0
	}
	return u
}

const notNewer = "(attribute_not_exists(#e) OR #e <= :e)"

func names(pairs ...string) map[string]string {
	m := map[string]string{"#e": attrEpoch}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}
