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
	"github.com/millrace-dev/millrace/internal/storage"
)

const (
	behindPrefix = "behind/"
	// cursorRow is the sort key of the cursor. It sorts right after the behind list, so one query
	// reads the list and the cursor, and no other rows.
	cursorRow = "cursor"
)

// Progress contains what a member needs to take over a shard.
type Progress struct {
	// Cursor is the time up to which the tail is finished: each event that was written earlier is
	// acked, or its aggregate is on the behind list. It is zero if no cursor is stored yet.
	Cursor time.Time
	// Reconciled is the time of the last reconciliation. It is zero if there was none.
	Reconciled time.Time
	// Reconciling is where a sweep has interrupted a reconciliation. It is nil if none has.
	Reconciling *storage.Reconciling
	// Behind holds the entries of the behind list.
	Behind []Behind
	// More reports whether the list has further entries, which ProgressUpTo has not read.
	More bool
}

type (
	// Behind is an entry of the behind list. See there.
	Behind = storage.Behind
	// Failure is a failed attempt at an event. See there.
	Failure = storage.Failure
)

const (
	// MaxReason is the limit for a stored error text, in bytes.
	MaxReason = 1 << 10
	// MaxFailure is the limit for the reason of Behind.Failure, in bytes. There may be many blocked
	// aggregates, and their entries are written while handlers fail. So an entry must fit into one
	// write unit.
	MaxFailure = 300
)

// Bounded returns the part of a text that is stored: at most MaxReason bytes, as valid UTF-8.
func Bounded(reason string) string { return BoundedTo(reason, MaxReason) }

// BoundedTo returns at most a number of bytes of a text, as valid UTF-8.
func BoundedTo(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return strings.ToValidUTF8(text, "?")
}

// Progress reads the cursor and the behind list of a shard with strong consistency. It costs one
// round trip for each MB.
//
// It writes nothing, because what a former owner may still write is correct. It reads the cursor
// before the list. A former owner lists an aggregate before its cursor passes the events of the
// aggregate, so an old list with a new cursor would lack the aggregate.
func (s *Store) Progress(ctx context.Context, k Shard) (progress Progress, err error) {
	return s.progress(ctx, k, 0)
}

// ProgressUpTo is like Progress, with a limit on the entries of the list. It returns the entries
// with the last ids. Progress.More reports whether there are others.
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

// add adds rows, which come in the descending order of their keys.
func (p *Progress) add(k Shard, sortKey string, rows []item) (err error) {
	for _, row := range rows {
		if value, ok := strings.CutPrefix(textOf(row[sortKey]), behindPrefix); ok {
			var b Behind
			b, err = behindOf(aggregate.ID{Type: k.Topic, Value: value}, row)
			p.Behind = append(p.Behind, b)
		} else {
			var c CursorRow
			c, err = cursorOf(row)
			p.Cursor, p.Reconciled, p.Reconciling = c.Cursor, c.Reconciled, c.Reconciling
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// BehindPages yields the entries of the behind list, including parked aggregates, in the order of
// their ids. It reads a page when the caller asks for it, with strong consistency, and costs one
// read unit for each 4 KB.
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
				yield(nil, fmt.Errorf("read the behind list of %s: %w", k.partition(), err))
				return
			}
			if !yield(entries, nil) {
				return
			}
		}
	}
}

// BehindAfter yields the entries that follow an aggregate, or all entries if the id is zero. It is
// for a reader that may stop soon: its first pages are small, see growingPages.
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
				yield(nil, fmt.Errorf("read the behind list of %s: %w", k.partition(), err))
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
	// earlier versions may leave failed_at in a row, see listItem
	case row[attrFailedAt] != nil && row[attrNumber] != nil:
		b.Failure, err = failureOf(row, attrFailedAt)
	}
	return b, err
}

// failureOf returns the failure of an entry. The attribute at holds its time.
func failureOf(row item, at string) (f *Failure, err error) {
	f = &Failure{Reason: textOf(row[attrReason]), Begun: row[attrBegun] != nil}
	if f.At, err = timeOf(row[at]); err != nil {
		return f, err
	}
	if f.Due, err = timeOf(row[attrDue]); err != nil {
		return f, err
	}
	if f.Resumed, err = uintOf(row[attrResumed]); err != nil {
		return f, err
	}
	if f.Number, err = uintOf(row[attrNumber]); err == nil && row[attrAttempts] != nil {
		f.Attempts, err = intOf(row[attrAttempts])
	}
	return f, err
}

// notOlder is the condition of writes to an entry of the behind list. A write of a former owner, or
// a late write of this owner, must not change or delete an entry that was written since.
const notOlder = "(attribute_not_exists(#e) OR #e < :e OR #e = :e AND (attribute_not_exists(#r) OR #r <= :r))"

// Revision orders the writes to an entry of the behind list.
type Revision struct {
	Epoch  uint64 // of the owner
	Number uint64 // rises with each write of the owner
}

// ListBehind adds an aggregate to the behind list of its shard, or replaces its entry. After that
// the cursor can pass the events of the aggregate.
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

// listItem returns the write of ListBehind for a transaction.
//
// An entry of a parked aggregate has the attribute parked_at, and an entry of a blocked aggregate
// may have failed_at. Both use number and reason. A member of an earlier version knows only
// parked_at. It therefore sees the entry of a blocked aggregate as one that is not parked, and
// removes number and reason when it replaces the entry.
func (s *Store) listItem(group Group, r Revision, b Behind) types.TransactWriteItem {
	update := "SET #e = :e, #r = :r, #h = :h REMOVE #parked, #failed, #n, #why, #a, #d, #re, #b"
	values := item{":e": number(r.Epoch), ":r": number(r.Number), ":h": number(b.Head)}
	set := func(f *Failure, most int) {
		values[":at"], values[":n"], values[":why"] = number(f.At.UnixMilli()), number(f.Number), text(BoundedTo(f.Reason, most))
		values[":a"] = number(f.Attempts)
	}
	switch {
	case b.Parked != nil:
		update = "SET #e = :e, #r = :r, #h = :h, #parked = :at, #n = :n, #why = :why, #a = :a REMOVE #failed, #d, #re, #b"
		set(b.Parked, MaxReason)
	case b.Failure != nil:
		update = "SET #e = :e, #r = :r, #h = :h, #failed = :at, #n = :n, #why = :why, #a = :a"
		set(b.Failure, MaxFailure)
		remove := " REMOVE #parked"
		if b.Failure.Due.IsZero() {
			remove += ", #d"
		} else {
			update, values[":d"] = update+", #d = :d", number(b.Failure.Due.UnixMilli())
		}
		if b.Failure.Resumed == 0 {
			remove += ", #re"
		} else {
			update, values[":re"] = update+", #re = :re", number(b.Failure.Resumed)
		}
		if b.Failure.Begun {
			update, values[":b"] = update+", #b = :b", number(1)
		} else {
			remove += ", #b"
		}
		update += remove
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName:           &s.table,
		Key:                 s.behindKey(group, b.Aggregate),
		UpdateExpression:    &update,
		ConditionExpression: aws.String(notOlder),
		ExpressionAttributeNames: names("#r", attrRevision, "#h", attrHead, "#parked", attrParkedAt, "#failed", attrFailedAt,
			"#n", attrNumber, "#why", attrReason, "#a", attrAttempts, "#d", attrDue, "#re", attrResumed, "#b", attrBegun),
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// UnlistBehind deletes the entry of an aggregate from the behind list.
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
		return fmt.Errorf("delete the entry of %s from the behind list: %w", id, err)
	}
	return nil
}

func (s *Store) behindKey(group Group, id aggregate.ID) item {
	return s.key(s.shardOf(group, id).partition(), behindPrefix+id.Value)
}
