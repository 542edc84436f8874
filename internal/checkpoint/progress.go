package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
)

const (
	behindPrefix = "behind/"
	// cursorRow is the sort key of the cursor. It sorts just after the list of those behind, so
	// that one query reads both and nothing else.
	cursorRow = "cursor"
)

// Progress is what a member that takes over a shard has to know.
type Progress struct {
	// Cursor: every event that was written before it is acked, or its aggregate is on the list of
	// those behind. Zero where there is none yet.
	Cursor time.Time
	// Swept is when heads and positions were compared last. Zero where they never were.
	Reconciled time.Time
	// Behind are the aggregates that the cursor has passed unfinished.
	Behind []Behind
	// More reports that there are others, which ProgressUpTo has not read.
	More bool
}

// Behind is an aggregate that the cursor has passed unfinished.
type Behind struct {
	Aggregate aggregate.ID
	// Head is the highest event number that was known when it was listed.
	Head uint64
	// Parked is why its events wait until someone lets them go on; nil unless they do.
	Parked *Failure
	// Failure is the last failed attempt that was known when the entry was written. It is nil for
	// an aggregate that is parked or had not failed, and in entries of earlier versions.
	Failure *Failure
	// Epoch is that of the owner who wrote the entry.
	Epoch uint64
}

// Failure is a failed attempt at an event.
type Failure struct {
	Number uint64 // of the event
	At     time.Time
	Reason string
}

const (
	// MaxReason bounds what is stored of an error, in bytes.
	MaxReason = 1 << 10
	// MaxFailure bounds the reason of Behind.Failure, in bytes. Blocked aggregates may be many, and
	// their entries are written while handlers fail, so an entry is to cost one write unit.
	MaxFailure = 300
)

// Bounded returns as much of a text as is stored of it, as valid UTF-8.
func Bounded(reason string) string { return BoundedTo(reason, MaxReason) }

// BoundedTo returns up to a number of bytes of a text, as valid UTF-8.
func BoundedTo(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return strings.ToValidUTF8(text, "?")
}

// Progress reads the shard's cursor and list, strongly consistent: one round trip for each MB. It
// stamps nothing: what a former owner may still write is as true as what it wrote before. But it
// reads the cursor first: a former owner lists an aggregate before the cursor passes its events,
// and an old list with a new cursor would lack it.
func (s *Store) Progress(ctx context.Context, k Shard) (progress Progress, err error) {
	return s.progress(ctx, k, 0)
}

// ProgressUpTo returns what Progress does, with at most a number of entries of the list: those with
// the last ids. Progress.More reports whether there are others.
func (s *Store) ProgressUpTo(ctx context.Context, k Shard, entries int) (Progress, error) {
	return s.progress(ctx, k, entries)
}

func (s *Store) progress(ctx context.Context, k Shard, most int) (progress Progress, err error) {
	input := &dynamodb.QueryInput{
		TableName:              &s.table,
		ConsistentRead:         aws.Bool(true),
		ScanIndexForward:       aws.Bool(false), // the cursor has the last key
		KeyConditionExpression: aws.String("#pk = :pk AND #sk BETWEEN :behind AND :cursor"),
		ExpressionAttributeNames: map[string]string{
			"#pk": s.keys.PartitionKey, "#sk": s.keys.SortKey,
		},
		ExpressionAttributeValues: item{":pk": text(k.partition()), ":behind": text(behindPrefix), ":cursor": text(cursorRow)},
	}
	if most > 0 {
		input.Limit = aws.Int32(int32(most) + 1) // and the cursor
	}
	for pages := dynamodb.NewQueryPaginator(s.client, input); pages.HasMorePages(); {
		page, err := s.nextPage(ctx, pages)
		if err == nil {
			err = progress.add(k, s.keys.SortKey, page.Items)
		}
		if err != nil {
			return Progress{}, fmt.Errorf("read progress of %s: %w", k.partition(), s.explain(err))
		}
		if most > 0 && len(progress.Behind) >= most {
			progress.More = pages.HasMorePages() || len(progress.Behind) > most
			progress.Behind = progress.Behind[:most]
			break
		}
	}
	slices.Reverse(progress.Behind)
	return progress, nil
}

// add adds rows in the descending order of their keys.
func (p *Progress) add(k Shard, sortKey string, rows []item) (err error) {
	for _, row := range rows {
		if value, ok := strings.CutPrefix(textOf(row[sortKey]), behindPrefix); ok {
			var b Behind
			b, err = behindOf(aggregate.ID{Type: k.Topic, Value: value}, row)
			p.Behind = append(p.Behind, b)
		} else {
			p.Cursor, p.Reconciled, err = cursorOf(row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// BehindPages yields the entries of the list, parked ones among them, in the order of their ids and
// page by page, as the caller asks for them: strongly consistent, one read unit for each 4 KB.
func (s *Store) BehindPages(ctx context.Context, k Shard) iter.Seq2[[]Behind, error] {
	return func(yield func([]Behind, error) bool) {
		pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
			TableName:                 &s.table,
			ConsistentRead:            aws.Bool(true),
			KeyConditionExpression:    aws.String("#pk = :pk AND begins_with(#sk, :prefix)"),
			ExpressionAttributeNames:  map[string]string{"#pk": s.keys.PartitionKey, "#sk": s.keys.SortKey},
			ExpressionAttributeValues: item{":pk": text(k.partition()), ":prefix": text(behindPrefix)},
		})
		for pages.HasMorePages() {
			entries, err := s.nextBehind(ctx, k, pages)
			if err != nil {
				yield(nil, fmt.Errorf("list those behind of %s: %w", k.partition(), err))
				return
			}
			if !yield(entries, nil) {
				return
			}
		}
	}
}

// BehindAfter yields the entries of the list as BehindPages does, for a reader that may stop soon:
// see growingPages. It begins after an aggregate, or with the first entry if the id is zero.
func (s *Store) BehindAfter(ctx context.Context, k Shard, after aggregate.ID) iter.Seq2[[]Behind, error] {
	return func(yield func([]Behind, error) bool) {
		from := ""
		if after != (aggregate.ID{}) {
			from = behindPrefix + after.Value
		}
		for rows, err := range s.growingPages(ctx, k, behindPrefix, from) {
			var entries []Behind
			if err == nil {
				entries, err = s.entriesOf(k, rows)
			}
			if err != nil {
				yield(nil, fmt.Errorf("list those behind of %s: %w", k.partition(), err))
				return
			}
			if !yield(entries, nil) {
				return
			}
		}
	}
}

func (s *Store) nextBehind(ctx context.Context, k Shard, pages *dynamodb.QueryPaginator) ([]Behind, error) {
	page, err := pages.NextPage(ctx)
	if err != nil {
		return nil, s.explain(err)
	}
	return s.entriesOf(k, page.Items)
}

func (s *Store) entriesOf(k Shard, rows []item) (entries []Behind, err error) {
	entries = make([]Behind, len(rows))
	for i, row := range rows {
		value := strings.TrimPrefix(textOf(row[s.keys.SortKey]), behindPrefix)
		if entries[i], err = behindOf(aggregate.ID{Type: k.Topic, Value: value}, row); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func cursorOf(row item) (cursor, reconciled time.Time, err error) {
	if cursor, err = timeOf(row[attrCursor]); err != nil {
		return cursor, reconciled, err
	}
	reconciled, err = timeOf(row[attrReconciled])
	return cursor, reconciled, err
}

func behindOf(id aggregate.ID, row item) (b Behind, err error) {
	b.Aggregate = id
	if b.Epoch, err = uintOf(row[attrEpoch]); err != nil {
		return b, err
	}
	if b.Head, err = uintOf(row[attrHead]); err != nil {
		return b, err
	}
	switch {
	case row[attrParkedAt] != nil:
		b.Parked, err = failureOf(row, attrParkedAt)
	case row[attrFailedAt] != nil && row[attrNumber] != nil: // earlier versions leave failed_at behind, see listItem
		b.Failure, err = failureOf(row, attrFailedAt)
	}
	return b, err
}

// failureOf returns the failure in an entry of the list, whose time is in an attribute.
func failureOf(row item, at string) (f *Failure, err error) {
	f = &Failure{Reason: textOf(row[attrReason])}
	if f.At, err = timeOf(row[at]); err != nil {
		return f, err
	}
	f.Number, err = uintOf(row[attrNumber])
	return f, err
}

// SaveCursor moves the cursor, notes when the shard was swept, and keeps former owners from doing
// either.
func (s *Store) SaveCursor(ctx context.Context, k Shard, epoch uint64, cursor, reconciled time.Time) error {
	_, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       s.key(k.partition(), cursorRow),
		UpdateExpression:          aws.String("SET #e = :e, #c = :c, #s = :s"),
		ConditionExpression:       aws.String(notNewer),
		ExpressionAttributeNames:  names("#c", attrCursor, "#s", attrReconciled),
		ExpressionAttributeValues: item{":e": number(epoch), ":c": number(max(0, cursor.UnixMilli())), ":s": number(max(0, reconciled.UnixMilli()))},
	})
	if err != nil {
		return fmt.Errorf("save cursor of %s: %w", k.partition(), err)
	}
	return nil
}

// RequestReconciliation has the next owner of a shard compare heads and positions at once: it notes that
// this was last done in 1970. The cursor stays where it is. The caller holds the shard under the
// epoch. One round trip, one write unit.
func (s *Store) RequestReconciliation(ctx context.Context, k Shard, epoch uint64) error {
	_, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       s.key(k.partition(), cursorRow),
		UpdateExpression:          aws.String("SET #e = :e, #s = :s"),
		ConditionExpression:       aws.String(notNewer),
		ExpressionAttributeNames:  names("#s", attrReconciled),
		ExpressionAttributeValues: item{":e": number(epoch), ":s": number(0)},
	})
	if err != nil {
		return fmt.Errorf("request a sweep of %s: %w", k.partition(), err)
	}
	return nil
}

// ReconciliationRequested returns those of some shards of a group on a topic whose comparison was requested
// and is still to come, strongly consistent: one round trip for each hundred, and one read unit for
// each.
func (s *Store) ReconciliationRequested(ctx context.Context, group Group, topic string, numbers []int) (requested []int, err error) {
	for some := range slices.Chunk(numbers, maxKeys) {
		keys, shards := make([]item, len(some)), map[string]int{}
		for i, number := range some {
			partition := Shard{Group: group, Topic: topic, Number: number}.partition()
			keys[i], shards[partition] = s.key(partition, cursorRow), number
		}
		rows, err := s.batchGet(ctx, keys, true)
		if err != nil {
			return nil, fmt.Errorf("read cursors of %s/%s: %w", group.Name, topic, err)
		}
		for _, row := range rows {
			_, reconciled, err := cursorOf(row)
			if err != nil {
				return nil, fmt.Errorf("read cursors of %s/%s: %w", group.Name, topic, err)
			}
			if row[attrReconciled] != nil && reconciled.UnixMilli() == 0 {
				requested = append(requested, shards[textOf(row[s.keys.PartitionKey])])
			}
		}
	}
	slices.Sort(requested)
	return requested, nil
}

// notOlder is the condition of writes to an entry of the list: neither an earlier owner nor an
// earlier write of this one, which arrives late, changes or deletes what was written since.
const notOlder = "(attribute_not_exists(#e) OR #e < :e OR #e = :e AND (attribute_not_exists(#r) OR #r <= :r))"

// Revision orders the writes to an entry of the list.
type Revision struct {
	Epoch  uint64 // of the owner
	Number uint64 // rises with each write of the owner
}

// ListBehind puts an aggregate on the shard's list of those behind, or replaces its entry, so that
// the cursor can pass its events. The epoch is that of the revision.
func (s *Store) ListBehind(ctx context.Context, group Group, r Revision, b Behind) error {
	u := s.listItem(group, r, b).Update
	_, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       u.Key,
		UpdateExpression:          u.UpdateExpression,
		ConditionExpression:       u.ConditionExpression,
		ExpressionAttributeNames:  u.ExpressionAttributeNames,
		ExpressionAttributeValues: u.ExpressionAttributeValues,
	})
	if err != nil {
		return fmt.Errorf("list %s as behind: %w", b.Aggregate, err)
	}
	return nil
}

// listItem is ListBehind as a part of a transaction. An entry that is parked has parked_at, and one
// that is blocked may have failed_at; number and reason are of either. So a member of an earlier
// version, which knows parked_at alone, sees a blocked entry as one that is not parked, and removes
// the number and the reason when it replaces the entry.
func (s *Store) listItem(group Group, r Revision, b Behind) types.TransactWriteItem {
	update := "SET #e = :e, #r = :r, #h = :h REMOVE #parked, #failed, #n, #why"
	values := item{":e": number(r.Epoch), ":r": number(r.Number), ":h": number(b.Head)}
	set := func(f *Failure, most int) {
		values[":at"], values[":n"], values[":why"] = number(f.At.UnixMilli()), number(f.Number), text(BoundedTo(f.Reason, most))
	}
	switch {
	case b.Parked != nil:
		update = "SET #e = :e, #r = :r, #h = :h, #parked = :at, #n = :n, #why = :why REMOVE #failed"
		set(b.Parked, MaxReason)
	case b.Failure != nil:
		update = "SET #e = :e, #r = :r, #h = :h, #failed = :at, #n = :n, #why = :why REMOVE #parked"
		set(b.Failure, MaxFailure)
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName:           &s.table,
		Key:                 s.behindKey(group, b.Aggregate),
		UpdateExpression:    &update,
		ConditionExpression: aws.String(notOlder),
		ExpressionAttributeNames: names("#r", attrRevision, "#h", attrHead, "#parked", attrParkedAt, "#failed", attrFailedAt,
			"#n", attrNumber, "#why", attrReason),
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// UnlistBehind takes it off again.
func (s *Store) UnlistBehind(ctx context.Context, group Group, id aggregate.ID, r Revision) error {
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                 &s.table,
		Key:                       s.behindKey(group, id),
		ConditionExpression:       aws.String(notOlder),
		ExpressionAttributeNames:  names("#r", attrRevision),
		ExpressionAttributeValues: item{":e": number(r.Epoch), ":r": number(r.Number)},
	})
	var failed *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &failed):
		err = ErrFenced
	case err != nil:
		err = s.explain(err)
	}
	if err != nil {
		return fmt.Errorf("take %s off the list of those behind: %w", id, err)
	}
	return nil
}

func (s *Store) behindKey(group Group, id aggregate.ID) item {
	return s.key(s.shardOf(group, id).partition(), behindPrefix+id.Value)
}
