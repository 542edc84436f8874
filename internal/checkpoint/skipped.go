package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Skipped is the record of an event that a group has passed over, because the event failed or
// because an operator skipped it. A record with a Due time is that of a deferred event, which is
// tried again.
type Skipped struct {
	Aggregate aggregate.ID
	Number    uint64
	EventType string // empty if the event could not be read
	At        time.Time
	Reason    string
	// Epoch is the epoch under which the event was skipped.
	Epoch uint64

	// Due is the time of the next attempt. It is zero if there is none.
	Due time.Time
	// Attempts counts the failed attempts at a deferred event. It is zero if the event was not
	// deferred.
	Attempts int
	// Part counts the acked messages of the event, if upcasters turn it into several events.
	Part int
}

// DueBy returns the time of the next attempt, or now if that time is from a wrong clock.
func (s *Skipped) DueBy(now time.Time) time.Time {
	if !s.Due.IsZero() && s.At.After(now.Add(storage.ClocksDiffer)) {
		return now
	}
	return s.Due
}

const (
	// skippedPrefix is outside the range of the cursor and the behind list, so their readers do not
	// read the records.
	skippedPrefix = "event/"
	// numberDigits is the number of hexadecimal digits of an event number in a key. With them the
	// key of any valid id fits into 1,024 bytes. With twenty decimal digits it would not.
	numberDigits = 16
)

// errResolve reports that an earlier attempt of the caller, whose outcome was unknown, has moved
// the position.
var errResolve = errors.New("an earlier attempt has moved the position: read it again")

func skippedSort(value string, number uint64) string {
	return fmt.Sprintf("%s%s-%0*x", skippedPrefix, value, numberDigits, number)
}

func (s *Store) skippedKey(group Group, id aggregate.ID, number uint64) item {
	return s.key(s.shardOf(group, id).partition(), skippedSort(id.Value, number))
}

// Skip records an event as skipped, and moves the position to it with the write advance, in one
// transaction. It costs one round trip, two write units for the position, and two for each KB of
// the record.
//
// ErrFenced reports that another member has taken over and that nothing was changed. After any
// other error the transaction may have been written. Then claim the position. If it is at the event
// or at a later one, SkippedUnder reports whether this call has moved it.
func (s *Store) Skip(ctx context.Context, group Group, advance types.TransactWriteItem, e Skipped) error {
	err := s.transact(ctx, advance, types.TransactWriteItem{Put: &types.Put{TableName: &s.table, Item: s.skippedRow(group, e)}})
	if err == nil {
		return nil
	}
	if position, refused := refusal(err); refused && s.rows != nil {
		err = s.rows.refusedSkip(RowOf{group, e.Aggregate, e.Epoch}, position, e.Number)
	} else if refused {
		err = ErrFenced
		if has, corrupt := uintOf(position[attrEpoch]); corrupt == nil && position[attrEpoch] != nil && has == e.Epoch {
			err = errResolve
		}
	} else {
		err = s.explain(err)
	}
	return fmt.Errorf("skip event %d of %s: %w", e.Number, e.Aggregate, err)
}

// SkipTo sets the position to the event, as PutPosition does, and records the event as skipped, in
// one transaction.
func (s *Store) SkipTo(ctx context.Context, group Group, e Skipped) error {
	err := s.Skip(ctx, group, s.putPositionItem(group, e.Aggregate, e.Epoch, e.Number), e)
	if errors.Is(err, errResolve) { // the row of the position is gone
		err = fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return err
}

// ErrMoved reports that a position has changed since the caller read it.
var ErrMoved = errors.New("the position has moved meanwhile")

// SkipParked skips the event because of which an aggregate is parked, and replaces the entry of the
// aggregate by one that is not parked, in one transaction. It costs two write units each for the
// position and the entry, and two for each KB of the record.
//
// The caller holds the shard under the epoch of the record and has read the position. It needs no
// claim: the write sets the epoch, and requires that the position has not changed. found is false
// if there is no position. A row that holds the position is claimed, for one write unit more.
//
// ErrMoved reports that a former owner has moved the position since, and ErrFenced that another
// member has taken over. In both cases nothing was changed. A repetition after a lost reply
// succeeds.
func (s *Store) SkipParked(ctx context.Context, group Group, b Behind, position uint64, found bool, e Skipped) error {
	move, done, err := s.moveParked(ctx, group, position, found, e)
	if err != nil {
		return fmt.Errorf("skip event %d of %s: %w", e.Number, e.Aggregate, err)
	}
	if done {
		return nil
	}
	b.Parked = nil
	err = s.transact(ctx, move,
		types.TransactWriteItem{Put: &types.Put{TableName: &s.table, Item: s.skippedRow(group, e)}},
		s.listItem(group, Revision{Epoch: e.Epoch}, b))
	if err == nil {
		return nil
	}
	var canceled *types.TransactionCanceledException
	switch was, refused := refusal(err); {
	case refused && s.rows != nil:
		if err = s.rows.Refused(RowOf{group, e.Aggregate, e.Epoch}, was, e.Number); err == nil {
			return nil // the reply to an earlier attempt was lost
		}
		if errors.Is(err, ErrRowGone) {
			err = ErrMoved
		}
	case refused:
		epoch, corrupt := uintOf(was[attrEpoch])
		switch {
		case corrupt != nil:
			err = corrupt
		case Reached(was, e.Epoch, e.Number):
			return nil // the reply to an earlier attempt was lost
		case epoch > e.Epoch:
			err = ErrFenced
		default:
			err = ErrMoved
		}
	case errors.As(err, &canceled) && aws.ToString(canceled.CancellationReasons[2].Code) == "ConditionalCheckFailed":
		err = ErrFenced
	default:
		err = s.explain(err)
	}
	return fmt.Errorf("skip event %d of %s: %w", e.Number, e.Aggregate, err)
}

// moveParked returns the write of SkipParked that moves the position. done is true if an earlier
// attempt has skipped the event.
func (s *Store) moveParked(ctx context.Context, group Group, position uint64, found bool, e Skipped) (move types.TransactWriteItem, done bool, err error) {
	if s.rows != nil {
		at, is, err := s.Claim(ctx, group, e.Aggregate, e.Epoch)
		if err == nil && (at != position || is != found) {
			if done, err = s.SkippedUnder(ctx, group, e.Aggregate, e.Number, e.Epoch); !done && err == nil {
				err = ErrMoved
			}
		}
		return s.AdvanceItem(group, e.Aggregate, e.Epoch, position, e.Number), done, err
	}
	move = s.putPositionItem(group, e.Aggregate, e.Epoch, e.Number)
	condition := notNewer + " AND attribute_not_exists(#p)"
	if found {
		condition = notNewer + " AND #p = :from"
		move.Update.ExpressionAttributeValues[":from"] = number(position)
	}
	move.Update.ConditionExpression = &condition
	return move, false, nil
}

// PutSkipped records an event as skipped if the group's positions are in another store.
func (s *Store) PutSkipped(ctx context.Context, group Group, e Skipped) error {
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                 &s.table,
		Item:                      s.skippedRow(group, e),
		ConditionExpression:       aws.String(notNewer),
		ExpressionAttributeNames:  names(),
		ExpressionAttributeValues: item{":e": number(e.Epoch)},
	})
	return s.recorded(e, err)
}

func (s *Store) skippedRow(group Group, e Skipped) item {
	row := s.skippedKey(group, e.Aggregate, e.Number)
	row[attrEpoch], row[attrNumber], row[attrSkippedAt] = number(e.Epoch), number(e.Number), number(e.At.UnixMilli())
	row[attrReason] = text(Bounded(e.Reason))
	if e.EventType != "" {
		row[attrEventType] = text(Bounded(e.EventType))
	}
	if !e.Due.IsZero() {
		row[attrDue] = number(e.Due.UnixMilli())
	}
	if e.Attempts > 0 || !e.Due.IsZero() {
		row[attrAttempts] = number(e.Attempts)
	}
	if e.Part > 0 {
		row[attrPart] = number(e.Part)
	}
	return row
}

// Reschedule replaces the record of an event, as it was read, by one with the result of another
// attempt or another Due time. It costs one write unit for each KB. A repetition after a lost reply
// succeeds.
//
// ErrFenced reports that the record was changed or deleted since it was read, or that a new owner
// of the shard has changed it.
func (s *Store) Reschedule(ctx context.Context, group Group, was, now Skipped) error {
	values := item{":e": number(now.Epoch), ":attempts": number(now.Attempts)}
	due := func(at time.Time, name string) string {
		if at.IsZero() {
			return "attribute_not_exists(#d)"
		}
		values[name] = number(at.UnixMilli())
		return "#d = " + name
	}
	unchanged, written := due(was.Due, ":was"), due(now.Due, ":due")+" AND #a = :attempts"
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                 &s.table,
		Item:                      s.skippedRow(group, now),
		ConditionExpression:       aws.String("#e <= :e AND (" + unchanged + " OR " + written + ")"),
		ExpressionAttributeNames:  names("#d", attrDue, "#a", attrAttempts),
		ExpressionAttributeValues: values,
	})
	return s.recorded(now, err)
}

// recorded returns the error of a conditional write of a record.
func (s *Store) recorded(e Skipped, err error) error {
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		err = ErrFenced
	default:
		err = s.explain(err)
	}
	return fmt.Errorf("record that event %d of %s is skipped: %w", e.Number, e.Aggregate, err)
}

// SkippedUnder reports whether an event was skipped in the term of an epoch. A record of the same
// term is never outdated: positions only move forward within a term, so no operator has had the
// event delivered again since.
func (s *Store) SkippedUnder(ctx context.Context, group Group, id aggregate.ID, number, epoch uint64) (bool, error) {
	e, found, err := s.ReadSkipped(ctx, group, id, number)
	return found && e.Epoch == epoch, err
}

// ReadSkipped reads a record with strong consistency. found is false if there is none.
func (s *Store) ReadSkipped(ctx context.Context, group Group, id aggregate.ID, number uint64) (e Skipped, found bool, err error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: s.skippedKey(group, id, number), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		err = s.explain(err)
	} else if len(out.Item) > 0 {
		e, err = s.skippedOf(id.Type, out.Item)
		found = true
	}
	if err != nil {
		return Skipped{}, false, fmt.Errorf("read whether event %d of %s was skipped: %w", number, id, err)
	}
	return e, found, nil
}

// Skipped yields the records of a shard in the order of ids and numbers. It reads a page when the
// caller asks for it, with strong consistency, and costs one read unit for each 4 KB.
func (s *Store) Skipped(ctx context.Context, k Shard) iter.Seq2[Skipped, error] {
	return s.skipped(ctx, k, "begins_with(#sk, :prefix)", item{":prefix": text(skippedPrefix)})
}

// SkippedAfter yields the records of a shard that follow an event, or all records if the id is
// zero. It is for a reader that may stop soon: its first pages are small, see growingPages.
func (s *Store) SkippedAfter(ctx context.Context, k Shard, after aggregate.ID, number uint64) iter.Seq2[Skipped, error] {
	return func(yield func(Skipped, error) bool) {
		from := ""
		if after != (aggregate.ID{}) {
			from = skippedSort(after.Value, number)
		}
		for rows, err := range s.growingPages(ctx, k, skippedPrefix, from) {
			if err != nil {
				yield(Skipped{}, fmt.Errorf("read skipped events of %s: %w", k.partition(), err))
				return
			}
			if !s.yieldSkipped(k, rows, yield) {
				return
			}
		}
	}
}

// yieldSkipped yields the records of some rows, and reports whether to continue.
func (s *Store) yieldSkipped(k Shard, rows []item, yield func(Skipped, error) bool) bool {
	for _, row := range rows {
		e, err := s.skippedOf(k.Topic, row)
		if err != nil {
			err = fmt.Errorf("read skipped events of %s: %w", k.partition(), err)
		}
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}

// SkippedBehind yields the records of one aggregate with numbers above a number.
func (s *Store) SkippedBehind(ctx context.Context, group Group, id aggregate.ID, number uint64) iter.Seq2[Skipped, error] {
	return func(yield func(Skipped, error) bool) {
		for e, err := range s.skipped(ctx, s.shardOf(group, id), "#sk BETWEEN :from AND :to", item{
			":from": text(skippedSort(id.Value, number)), ":to": text(skippedSort(id.Value, math.MaxUint64)),
		}) {
			// The keys of "x" may enclose the keys of "x-0000000000000001".
			if err == nil && (e.Aggregate != id || e.Number <= number) {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *Store) skipped(ctx context.Context, k Shard, condition string, values item) iter.Seq2[Skipped, error] {
	return func(yield func(Skipped, error) bool) {
		values[":pk"] = text(k.partition())
		pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
			TableName:                 &s.table,
			ConsistentRead:            aws.Bool(true),
			KeyConditionExpression:    aws.String("#pk = :pk AND " + condition),
			ExpressionAttributeNames:  map[string]string{"#pk": s.keys.PartitionKey, "#sk": s.keys.SortKey},
			ExpressionAttributeValues: values,
		})
		for pages.HasMorePages() {
			page, err := s.nextPage(ctx, pages)
			if err != nil {
				yield(Skipped{}, fmt.Errorf("read skipped events of %s: %w", k.partition(), s.explain(err)))
				return
			}
			if !s.yieldSkipped(k, page.Items, yield) {
				return
			}
		}
	}
}

func (s *Store) skippedOf(topic string, row item) (e Skipped, err error) {
	sort := textOf(row[s.keys.SortKey])
	value := strings.TrimPrefix(sort, skippedPrefix)
	if len(value) <= numberDigits {
		return e, fmt.Errorf("%w: %q is not the key of a skipped event", ErrCorrupt, sort)
	}
	value = value[:len(value)-numberDigits-1]
	e = Skipped{
		Aggregate: aggregate.ID{Type: topic, Value: value}, EventType: textOf(row[attrEventType]), Reason: textOf(row[attrReason]),
	}
	var errs [6]error
	e.Number, errs[0] = uintOf(row[attrNumber])
	e.Epoch, errs[1] = uintOf(row[attrEpoch])
	e.At, errs[2] = timeOf(row[attrSkippedAt])
	e.Due, errs[3] = timeOf(row[attrDue])
	e.Attempts, errs[4] = intOf(row[attrAttempts])
	e.Part, errs[5] = intOf(row[attrPart])
	return e, errors.Join(errs[:]...)
}

// RemoveSkipped deletes a record as it was read. A record that is already deleted is no error.
// ErrFenced reports that the record was written again since.
func (s *Store) RemoveSkipped(ctx context.Context, group Group, e Skipped) error {
	if err := s.remove(ctx, s.skippedKey(group, e.Aggregate, e.Number), e.Epoch); err != nil {
		return fmt.Errorf("delete the record that event %d of %s was skipped: %w", e.Number, e.Aggregate, err)
	}
	return nil
}
