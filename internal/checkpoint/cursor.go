package checkpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/storage"
)

// Never is the due time of a shard that has nothing to do before its tail shows a new event. It is
// in the year 9999.
var Never = time.UnixMilli(253_402_300_799_000)

// CursorRow is the row of the cursor of a shard. Cursor and Reconciled are those of Progress.
type CursorRow struct {
	Epoch              uint64 // of the owner that stores it
	Cursor, Reconciled time.Time
	// Due is the time at which a sweep must visit the shard although its tail shows nothing new. It
	// is zero if this is not known.
	Due time.Time
	// Reconciling is where the next sweep continues a reconciliation. It is nil if none was begun.
	Reconciling *storage.Reconciling
}

// SaveCursor stores a row. After that, former owners can store none.
func (s *Store) SaveCursor(ctx context.Context, k Shard, c CursorRow) error {
	set, remove := "SET #e = :e, #c = :c, #s = :s", []string{}
	values := item{":e": number(c.Epoch), ":c": number(max(0, c.Cursor.UnixMilli())), ":s": number(max(0, c.Reconciled.UnixMilli()))}
	if c.Due.IsZero() {
		remove = append(remove, "#d")
	} else {
		set, values[":d"] = set+", #d = :d", number(max(0, c.Due.UnixMilli()))
	}
	if c.Reconciling == nil {
		remove = append(remove, "#p")
	} else {
		place, err := json.Marshal(c.Reconciling)
		if err != nil {
			return err
		}
		set, values[":p"] = set+", #p = :p", text(string(place))
	}
	if len(remove) > 0 {
		set += " REMOVE " + strings.Join(remove, ", ")
	}
	_, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       s.key(k.partition(), cursorRow),
		UpdateExpression:          &set,
		ConditionExpression:       aws.String(notNewer),
		ExpressionAttributeNames:  names("#c", attrCursor, "#s", attrReconciled, "#d", attrDue, "#p", attrReconciling),
		ExpressionAttributeValues: values,
	})
	if err != nil {
		return fmt.Errorf("save cursor of %s: %w", k.partition(), err)
	}
	return nil
}

// RequestReconciliation makes the next owner of a shard reconcile it at once, by storing 1970 as
// the time of the last reconciliation. The cursor stays as it is. The caller holds the shard under
// the epoch. It costs one round trip and one write unit.
func (s *Store) RequestReconciliation(ctx context.Context, k Shard, epoch uint64) error {
	_, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       s.key(k.partition(), cursorRow),
		UpdateExpression:          aws.String("SET #e = :e, #s = :s REMOVE #p"),
		ConditionExpression:       aws.String(notNewer),
		ExpressionAttributeNames:  names("#s", attrReconciled, "#p", attrReconciling),
		ExpressionAttributeValues: item{":e": number(epoch), ":s": number(0)},
	})
	if err != nil {
		return fmt.Errorf("request a reconciliation of %s: %w", k.partition(), err)
	}
	return nil
}

// Cursors reads the rows of the cursors of some shards, by their numbers, with eventual
// consistency: one round trip for each 100 shards, and half a read unit for each shard. Rows that
// do not exist are left out.
func (s *Store) Cursors(ctx context.Context, group Group, topic string, numbers []int) (map[int]CursorRow, error) {
	cursors := map[int]CursorRow{}
	err := s.cursorRows(ctx, group, topic, numbers, false, func(number int, row item) (err error) {
		cursors[number], err = cursorOf(row)
		return err
	})
	return cursors, err
}

// cursorRows calls see for the row of the cursor of each of some shards.
func (s *Store) cursorRows(ctx context.Context, group Group, topic string, numbers []int, consistent bool, see func(int, item) error) error {
	for some := range slices.Chunk(numbers, maxKeys) {
		keys, shards := make([]item, len(some)), map[string]int{}
		for i, number := range some {
			partition := Shard{Group: group, Topic: topic, Number: number}.partition()
			keys[i], shards[partition] = s.key(partition, cursorRow), number
		}
		rows, err := s.batchGet(ctx, keys, consistent)
		for _, row := range rows {
			if err == nil {
				err = see(shards[textOf(row[s.keys.PartitionKey])], row)
			}
		}
		if err != nil {
			return fmt.Errorf("read cursors of %s/%s: %w", group.Name, topic, err)
		}
	}
	return nil
}

// ReconciliationRequested returns those of the given shards whose requested reconciliation is not
// done yet. It reads with strong consistency: one round trip for each 100 shards, and one read unit
// for each shard.
func (s *Store) ReconciliationRequested(ctx context.Context, group Group, topic string, numbers []int) (requested []int, err error) {
	err = s.cursorRows(ctx, group, topic, numbers, true, func(number int, row item) error {
		c, err := cursorOf(row)
		if row[attrReconciled] != nil && c.Reconciled.UnixMilli() == 0 {
			requested = append(requested, number)
		}
		return err
	})
	slices.Sort(requested)
	return requested, err
}

func cursorOf(row item) (c CursorRow, err error) {
	for name, into := range map[string]*time.Time{attrCursor: &c.Cursor, attrReconciled: &c.Reconciled, attrDue: &c.Due} {
		if *into, err = timeOf(row[name]); err != nil {
			return c, err
		}
	}
	if place := textOf(row[attrReconciling]); place != "" {
		if err := json.Unmarshal([]byte(place), &c.Reconciling); err != nil {
			return c, fmt.Errorf("%w: %q is no place of a reconciliation", ErrCorrupt, place)
		}
	}
	c.Epoch, err = uintOf(row[attrEpoch])
	return c, err
}
