package packed

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// snapshotRow is a row of the snapshot table.
type snapshotRow struct {
	snapshot *journaltype.Snapshot
	// from and commit name the item with the last event of the snapshot. A snapshot is valid only
	// while that item exists. Otherwise it belongs to a history that was replaced.
	from     uint64
	commit   types.AttributeValue
	before   uint64 // on a base: earlier events are removed
	kept     []uint64
	commands []keptCommand
	encoded  types.AttributeValue // the commands as they are stored; nil if there are none
	guards   bool
	deleted  time.Time
}

// latest returns the row of the latest snapshot, and nil if there is none.
func (p *layout) latest(ctx context.Context, id aggregate.ID) (*snapshotRow, error) {
	return p.snapshotAt(ctx, id, strconv.Itoa(latestSnapshot))
}

func (p *layout) snapshotAt(ctx context.Context, id aggregate.ID, number string) (*snapshotRow, error) {
	it, err := p.GetItem(ctx, p.Config.Tables.Snapshot, p.keyIn(partitionOf(id), number))
	if err != nil || it == nil {
		return nil, err
	}
	return p.snapshotOf(it)
}

func (p *layout) snapshotOf(it table.Item) (*snapshotRow, error) {
	row := &snapshotRow{commit: it[attrCommit], kept: table.NumbersOf(it[attrKept]), guards: it[attrGuards] != nil}
	row.before, _ = table.UintOf(it[attrBefore])
	row.from, _ = table.UintOf(it[attrFirst])
	if millis, ok := table.IntOf(it[attrDeleted]); ok {
		row.deleted = time.UnixMilli(millis).UTC()
	}
	if b, ok := it[attrID].(*types.AttributeValueMemberB); ok {
		if err := unmarshalCommands(b.Value, &row.commands); err != nil {
			return nil, p.corrupt(p.Config.Tables.Snapshot, it, fmt.Sprintf("has command ids that cannot be read: %v", err))
		}
		row.encoded = b
	}
	payload, ok := it[attrState].(*types.AttributeValueMemberB)
	if !ok {
		return row, nil // the row of a deleted aggregate
	}
	s := &journaltype.Snapshot{Payload: payload.Value}
	var numbered bool
	s.Number, numbered = table.UintOf(it[attrCount])
	s.Schema, _ = table.UintOf(it[attrSchema])
	if s.Encoding, _ = table.StringOf(it[attrApplied]); s.Encoding == compressedState {
		s.Encoding = ""
		var err error
		if s.Payload, err = decompress(payload.Value, storage.MaxItemBytes); err != nil {
			return nil, p.corrupt(p.Config.Tables.Snapshot, it, fmt.Sprintf("has a state that cannot be decompressed: %v", err))
		}
	}
	if !numbered || s.Number == 0 || row.from == 0 || row.commit == nil {
		return nil, p.corrupt(p.Config.Tables.Snapshot, it, "is a snapshot that does not name the commit with its last event")
	}
	row.snapshot = s
	return row, nil
}

// isOf reports whether a snapshot ends with this item.
func (row *snapshotRow) isOf(it *item) bool {
	commit, _, ok := commitOf(row.commit)
	return ok && it != nil && it.count > 0 && it.first == row.from && it.commit == commit && it.last() == row.snapshot.Number
}

// name returns a name that is unique among the snapshots of an aggregate.
func (row *snapshotRow) name() string {
	commit, _, _ := commitOf(row.commit)
	return strconv.FormatUint(row.snapshot.Number, 10) + "/" + commit
}

// isSound reads the item that a snapshot ends with, and reports whether it still exists.
func (p *layout) isSound(ctx context.Context, id aggregate.ID, row *snapshotRow) (bool, error) {
	it, err := p.GetItem(ctx, p.Config.Tables.Journal, p.key(id, row.from))
	if err != nil || it == nil {
		return false, err
	}
	end, err := p.parse(it)
	return err == nil && row.isOf(end), nil
}

// snapshots returns the latest snapshot, and the one that stands for truncated events.
func (p *layout) snapshots(ctx context.Context, id aggregate.ID) (latest, base *snapshotRow, err error) {
	items, err := p.BatchGetKeys(ctx, p.Config.Tables.Snapshot, []table.Item{p.snapshotKey(id, latestSnapshot), p.snapshotKey(id, baseSnapshot)}, true)
	for _, it := range items {
		row, err := p.snapshotOf(it)
		if err != nil {
			return nil, nil, err
		}
		if _, number := p.placeOf(it); number == strconv.Itoa(latestSnapshot) {
			latest = row
		} else {
			base = row
		}
	}
	return latest, base, err
}

// newestFirst returns the rows that have a snapshot, the one of the latest event first. The base
// can be of a later event than the latest snapshot: a trim replaces only the base, and an import
// stores both.
func newestFirst(rows ...*snapshotRow) []*snapshotRow {
	rows = slices.DeleteFunc(rows, func(row *snapshotRow) bool { return row == nil || row.snapshot == nil })
	slices.SortStableFunc(rows, func(a, b *snapshotRow) int { return cmp.Compare(b.snapshot.Number, a.snapshot.Number) })
	return rows
}

func (p *layout) SnapshotBefore(ctx context.Context, head journaltype.Head, number uint64) (*journaltype.Snapshot, error) {
	for _, listed := range slices.Backward(head.Redundant) {
		if listed > number {
			continue
		}
		row, err := p.snapshotAt(ctx, head.Aggregate, strconv.FormatUint(listed, 10))
		if err != nil {
			return nil, err
		}
		if row == nil || row.snapshot == nil {
			continue
		}
		if sound, err := p.isSound(ctx, head.Aggregate, row); sound || err != nil {
			return row.snapshot, err
		}
	}
	base, err := p.snapshotAt(ctx, head.Aggregate, strconv.Itoa(baseSnapshot))
	if err != nil || base == nil || base.snapshot == nil || base.snapshot.Number > number {
		return nil, err
	}
	sound, err := p.isSound(ctx, head.Aggregate, base)
	if !sound || err != nil {
		return nil, err
	}
	return base.snapshot, nil
}

func (p *layout) RemoveSnapshots(ctx context.Context, id aggregate.ID, numbers []uint64) error {
	keys := make([]table.Item, len(numbers))
	for i, n := range numbers {
		keys[i] = p.key(id, n)
	}
	return p.DeleteAll(ctx, p.Config.Tables.Snapshot, keys)
}

// rowOf returns the row of a snapshot. from and commit name the item with its last event.
func (p *layout) rowOf(key table.Item, s *journaltype.Snapshot, from uint64, commit types.AttributeValue) table.Item {
	key[attrState] = table.BinaryValue(s.Payload)
	key[attrCount] = table.NumberValue(s.Number)
	key[attrFirst] = table.NumberValue(from)
	key[attrCommit] = commit
	if s.Schema != 0 {
		key[attrSchema] = table.NumberValue(s.Schema)
	}
	if s.Encoding != "" {
		key[attrApplied] = table.StringValue(s.Encoding)
	}
	return key
}

// storeSnapshot writes the snapshot of a commit after the commit, and records the outcome in the
// receipt. A load without the snapshot replays more events. Nothing else depends on it.
func (p *layout) storeSnapshot(ctx context.Context, c *commit) {
	if c.Redundancy != nil {
		c.listRedundant(c.Redundancy.Listed)
	}
	if c.Snapshot == nil {
		return
	}
	if len(c.Events) == 0 {
		// The commit has no item with which a load could begin.
		c.LeaveOut(storage.ErrNoRoom)
		return
	}
	if c.Snapshot.Number != c.Receipt.Version {
		c.LeaveOut(fmt.Errorf("it is of event %d, not of the last event: %w", c.Snapshot.Number, storage.ErrNoRoom))
		return
	}
	// The commit is written, but its caller waits.
	ctx, cancel := context.WithTimeout(retry.WithoutBudget(ctx), p.Config.RetryBudget)
	defer cancel()
	if err := p.tryToStore(ctx, c); err != nil {
		c.LeaveOut(err)
	}
}

func (p *layout) tryToStore(ctx context.Context, c *commit) error {
	end := c.items[len(c.items)-1]
	from, _ := table.UintOf(end[p.Config.Attributes.SortKey])
	row := p.rowOf(p.snapshotKey(c.Aggregate, latestSnapshot), c.Snapshot, from, end[attrCommit])
	if c.Worth != nil && !p.paysFor(c, row) {
		c.Receipt.SnapshotDeclined = true
		return nil
	}
	// The ids that have no room in the row become guards, which is for nothing if the row is not
	// stored.
	if err := checkSize(c.Aggregate, row); err != nil {
		return err
	}
	if err := p.keepCommands(ctx, c, row); err != nil {
		return err
	}
	kept, due, err := p.keepRedundant(ctx, c)
	if err != nil {
		return err
	}
	if err := p.RemoveSnapshots(ctx, c.Aggregate, due); err != nil {
		kept = append(slices.Clone(due), kept...) // a later commit removes them
	}
	if kept != nil {
		row[attrKept] = table.ListValue(kept)
	}
	if err := checkSize(c.Aggregate, row); err != nil {
		return err
	}
	var redundant []types.TransactWriteItem
	if c.Redundancy != nil {
		redundant = append(redundant, p.putRedundant(c, from, end[attrCommit]))
	}
	stored, err := p.putSnapshot(ctx, c.Aggregate, row, redundant...)
	if stored {
		c.listRedundant(kept)
	}
	return err
}

// checkSize returns a *journal.TooLargeError if the row of a snapshot exceeds an item.
func checkSize(id aggregate.ID, row table.Item) error {
	if size := table.ItemSize(row); size > storage.MaxItemBytes {
		return &journaltype.TooLargeError{ID: id, What: "the snapshot", Size: size, Limit: storage.MaxItemBytes, Unit: storage.UnitBytes}
	}
	return nil
}

// listRedundant puts the list of redundant snapshots into the receipt, if the caller passed one.
func (c *commit) listRedundant(listed []uint64) {
	if r := c.Redundancy; r != nil && r.Listed != nil {
		c.Receipt.Redundant, c.Receipt.Surplus = listed, nil
		if surplus := len(listed) - r.Keep; surplus > 0 && r.TTL == 0 {
			c.Receipt.Surplus = listed[:surplus]
		}
	}
}

// keepRedundant returns the list of redundant snapshots after this commit, nil if the commit adds
// none. Due lists those that were surplus before the commit and are no longer in the list: the
// caller may have failed to remove them.
func (p *layout) keepRedundant(ctx context.Context, c *commit) (kept, due []uint64, err error) {
	r := c.Redundancy
	switch {
	case r == nil:
		return nil, nil, nil
	case r.Listed == nil:
		row, err := p.latest(ctx, c.Aggregate)
		if err != nil {
			return nil, nil, err
		}
		if row != nil {
			kept = slices.DeleteFunc(row.kept, func(n uint64) bool { return n > c.Expected })
		}
		return append(kept, c.Snapshot.Number), nil, nil
	case r.TTL > 0: // snapshots that are no longer listed expire
		kept = append(slices.Clone(r.Listed), c.Snapshot.Number)
		return kept[max(0, len(kept)-r.Keep):], nil, nil
	}
	surplus := max(0, len(r.Listed)-r.Keep)
	return append(slices.Clone(r.Listed[surplus:]), c.Snapshot.Number), r.Listed[:surplus], nil
}

// putRedundant stores a snapshot under its own number.
func (p *layout) putRedundant(c *commit, from uint64, commit types.AttributeValue) types.TransactWriteItem {
	row := p.rowOf(p.key(c.Aggregate, c.Snapshot.Number), c.Snapshot, from, commit)
	p.compressState(row)
	if ttl := c.Redundancy.TTL; ttl > 0 {
		row[p.Config.Attributes.TTL] = table.NumberValue(c.Receipt.OccurredAt.Add(ttl).Unix())
	}
	return types.TransactWriteItem{Put: &types.Put{TableName: &p.Config.Tables.Snapshot, Item: row}}
}

// putSnapshot replaces the latest snapshot, and reports whether it did. It does not replace a
// snapshot of a later event, unless that belongs to a history that was replaced. A tombstone has
// the highest number. If the row has no list of redundant snapshots, the stored list stays. The
// actions in beside are in the same transaction, because a separate request could arrive late,
// after a deletion.
func (p *layout) putSnapshot(ctx context.Context, id aggregate.ID, row table.Item, beside ...types.TransactWriteItem) (stored bool, err error) {
	p.compressState(row)
	a, name := p.Config.Attributes, p.Config.Tables.Snapshot
	var sets, removes []string
	names, values := map[string]string{}, table.Item{}
	for _, name := range []string{attrState, attrCount, attrFirst, attrCommit, attrSchema, attrApplied, attrID, attrGuards, attrKept, attrBefore} {
		alias := "#" + name
		value, given := row[name]
		switch {
		case given:
			sets, values[":"+name] = append(sets, alias+" = :"+name), value
		case name == attrKept || name == attrGuards || name == attrBefore:
			continue
		default:
			removes = append(removes, alias)
		}
		names[alias] = name
	}
	expression := "SET " + strings.Join(sets, ", ")
	if len(removes) > 0 {
		expression += " REMOVE " + strings.Join(removes, ", ")
	}
	update := &types.Update{
		TableName:                           &name,
		Key:                                 table.Item{a.PartitionKey: row[a.PartitionKey], a.SortKey: row[a.SortKey]},
		UpdateExpression:                    &expression,
		ConditionExpression:                 aws.String("attribute_not_exists(#n) OR #n < :n"),
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	for again := range 2 {
		err := p.update(ctx, update, beside)
		there, refused := table.RefusedItem(err, 0)
		if !refused {
			return err == nil, dynamo.Explain(err, name)
		}
		old, err := p.snapshotOf(there)
		if err == nil && old.snapshot != nil {
			var sound bool
			if sound, err = p.isSound(ctx, id, old); sound {
				number, _ := table.UintOf(row[attrCount])
				// A snapshot with the same number is this one: the reply to an earlier attempt was
				// lost.
				return old.snapshot.Number == number, nil
			}
		}
		if err != nil || old.snapshot == nil || again > 0 {
			return false, err
		}
		update.ConditionExpression = aws.String("#n = :old AND #c = :lost")
		values[":old"], values[":lost"] = there[attrCount], there[attrCommit]
	}
	return false, nil
}

// update sends a transaction only if there are actions beside the update.
func (p *layout) update(ctx context.Context, u *types.Update, beside []types.TransactWriteItem) error {
	if len(beside) > 0 {
		return p.Transact(ctx, append([]types.TransactWriteItem{{Update: u}}, beside...)...)
	}
	return p.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression, ConditionExpression: u.ConditionExpression,
		ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: u.ReturnValuesOnConditionCheckFailure,
	})
}

// noMoreSnapshots is the number of a tombstone in the snapshot table. Every snapshot has a lower
// one.
const noMoreSnapshots = math.MaxUint64
