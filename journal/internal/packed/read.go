package packed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/rows"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// endOfNumbers is higher than the number of any event. A sort key has at most 38 digits.
const endOfNumbers = "99999999999999999999"

// query reads the items of an aggregate with the numbers from..to, strongly consistent, page by
// page. It ends if do returns ErrStop or another error.
func (p *layout) query(ctx context.Context, id aggregate.ID, from, to string, options func(*dynamodb.QueryInput), do func(*item, error) error) error {
	name := p.Config.Tables.Journal
	input := &dynamodb.QueryInput{
		TableName:                &name,
		ConsistentRead:           aws.Bool(true),
		KeyConditionExpression:   aws.String("#pk = :pk AND #sk BETWEEN :from AND :to"),
		ExpressionAttributeNames: table.AttributeNames("#pk", p.Config.Attributes.PartitionKey, "#sk", p.Config.Attributes.SortKey),
		ExpressionAttributeValues: table.Item{
			":pk": table.StringValue(partitionOf(id)), ":from": &types.AttributeValueMemberN{Value: from}, ":to": &types.AttributeValueMemberN{Value: to},
		},
	}
	if options != nil {
		options(input)
	}
	for {
		page, err := rows.Query(ctx, p.Source, input, p.parseRow)
		if err != nil {
			return dynamo.Explain(err, name)
		}
		for _, read := range page.Items {
			if err := do(read.item, read.err); err != nil {
				return err
			}
		}
		if page.LastKey == nil {
			return nil
		}
		input.ExclusiveStartKey = page.LastKey
	}
}

// withoutEvents leaves the events out of the reply. DynamoDB still bills for them.
func (p *layout) withoutEvents(in *dynamodb.QueryInput) {
	in.ProjectionExpression = aws.String("#pk, #sk, #c, #n, #t, #k, #f, #l, #b, #d, #o, #g, #h")
	for name, attribute := range map[string]string{
		"#c": attrCommit, "#n": attrCount, "#t": attrTime, "#k": attrID, "#f": attrFirst, "#l": attrLast, "#b": attrBefore, "#d": attrDeleted,
		"#o": attrNoted, "#g": attrGuards, "#h": attrHold,
	} {
		in.ExpressionAttributeNames[name] = attribute
	}
}

// end reads the last item of an aggregate without its events. If only a part of a commit is
// visible, it waits for the rest.
func (p *layout) end(ctx context.Context, id aggregate.ID) (*item, error) {
	return p.endBy(ctx, id, true)
}

func (p *layout) endBy(ctx context.Context, id aggregate.ID, consistent bool) (*item, error) {
	wait := table.UntilShown()
	for {
		last, err := p.lastUpTo(ctx, id, endOfNumbers, func(in *dynamodb.QueryInput) {
			in.ConsistentRead = &consistent
			p.withoutEvents(in)
		}, true)
		if err == nil && last.last() == 0 {
			err = notFound(id) // there are only commands without events
		}
		if err != nil || !last.isTorn() {
			return last, err
		}
		if err := p.awaitItem(ctx, id, last.last()+1, wait); err != nil {
			return nil, err
		}
	}
}

// awaitItem waits before an item is read again that a Query did not return, although later items or
// the caller show that it was written. A Query may see only a part of a transaction. When the waits
// are used up, awaitItem decides by a transactional read.
func (p *layout) awaitItem(ctx context.Context, id aggregate.ID, number uint64, wait backoff.BackOff) error {
	if retry.Sleep(ctx, wait.NextBackOff()) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	key := p.key(id, number)
	items, err := p.TransactGet(ctx, p.Config.Tables.Journal, []table.Item{key})
	if err != nil {
		return err
	}
	if len(items) > 0 {
		it, err := p.parse(items[0])
		switch {
		case err != nil:
			return err
		case it.isTombstone():
			return it.deletedError()
		case it.count > 0:
			wait.Reset()
			return nil
		}
	}
	missing := p.corrupt(p.Config.Tables.Journal, key, "is missing, although later events or the caller show that it was written")
	missing.Aggregate, missing.Number, missing.Missing = id, number, true
	return missing
}

// commitAt returns the commit that contains an event, or the last one before it.
func (p *layout) commitAt(ctx context.Context, id aggregate.ID, number uint64) (*item, error) {
	return p.lastUpTo(ctx, id, strconv.FormatUint(number, 10), func(*dynamodb.QueryInput) {}, false)
}

// lastUpTo returns the last item up to a number. It skips placeholders unless placeholder is true.
func (p *layout) lastUpTo(
	ctx context.Context, id aggregate.ID, number string, options func(*dynamodb.QueryInput), placeholder bool,
) (found *item, err error) {
	err = p.query(ctx, id, "1", number, func(in *dynamodb.QueryInput) {
		in.ScanIndexForward, in.Limit = aws.Bool(false), aws.Int32(1)
		options(in)
	}, func(it *item, err error) error {
		if err != nil || it.isPlaceholder() && !placeholder {
			return err
		}
		found = it
		return engine.ErrStop
	})
	switch {
	case found != nil:
		return found, nil
	case err != nil:
		return nil, err
	}
	return nil, notFound(id)
}

func notFound(id aggregate.ID) error {
	return fmt.Errorf("%w: %q of type %q has no events", journaltype.ErrNotFound, id.Value, id.Type)
}

func (p *layout) Version(ctx context.Context, id aggregate.ID) (uint64, error) {
	last, err := p.end(ctx, id)
	if err != nil {
		return 0, err
	}
	if last.isTombstone() {
		return 0, last.deletedError()
	}
	return last.last(), nil
}

func (p *layout) Events(ctx context.Context, id aggregate.ID, from, to uint64, yield func(*journaltype.Record) bool) error {
	if from > to {
		return nil
	}
	next := min(max(from, 1), math.MaxInt64) // no event has a higher number
	to = min(to, math.MaxInt64)
	wait := table.UntilShown()
	for next <= to {
		begun := next
		err := p.eventsOnce(ctx, id, &next, to, yield)
		switch {
		case err != nil && !errors.Is(err, errAgain):
			return err
		case next > to:
			return nil
		case next > begun:
			wait.Reset()
			continue
		}
		// The caller knows that there are more events.
		if err := p.awaitItem(ctx, id, next, wait); err != nil {
			return err
		}
	}
	return nil
}

// mostClaimed is the maximum number of commits that a hint causes to be read at once.
const mostClaimed = 25

// After reads the commits that begin after the number, up to the claimed version. It does not read
// the last commit again, which may be large, so it yields no events of a commit that contains the
// number.
func (p *layout) After(ctx context.Context, id aggregate.ID, number, claimed uint64, yield func(*journaltype.Record) bool) (found uint64, err error) {
	next := number + 1
	claimed = max(claimed, next)
	limit := int32(min(claimed-number, mostClaimed)) //nolint:gosec // not above mostClaimed
	err = p.query(ctx, id, strconv.FormatUint(next, 10), endOfNumbers, func(in *dynamodb.QueryInput) { in.Limit = &limit }, func(it *item, err error) error {
		switch {
		case err != nil || it.isPlaceholder():
			return err
		case it.first != next, it.isTombstone(), it.lacksEvents():
			return engine.ErrStop
		}
		records, err := p.recordsOf(it)
		if err != nil {
			return err
		}
		found = it.last()
		for _, r := range records {
			if next++; !yield(r) {
				return engine.ErrStop
			}
		}
		if next > claimed {
			return engine.ErrStop
		}
		return nil
	})
	return found, err
}

// eventsOnce reads until the events end, or until one is missing, and then returns errAgain. The
// commit with the first event may begin before that event.
func (p *layout) eventsOnce(ctx context.Context, id aggregate.ID, next *uint64, to uint64, yield func(*journaltype.Record) bool) error {
	take := func(it *item) error {
		if it.lacksEvents() {
			return p.truncated(ctx, id, it)
		}
		records, err := p.recordsOf(it)
		if err != nil {
			return corruptAt(err, *next)
		}
		for _, r := range records {
			if r.Number < *next || r.Number > to {
				continue
			}
			if *next++; !yield(r) {
				return engine.ErrStop
			}
		}
		return nil
	}
	// align reads the commit that contains the first event but begins before it.
	align := func() error {
		earlier, err := p.commitAt(ctx, id, *next)
		if errors.Is(err, journaltype.ErrNotFound) {
			return nil
		}
		if err != nil || earlier.last() < *next {
			return err
		}
		return take(earlier)
	}
	aligned := *next == 1
	err := p.query(ctx, id, strconv.FormatUint(*next, 10), strconv.FormatUint(to, 10), nil, func(it *item, err error) error {
		if err != nil {
			return err
		}
		if it.isPlaceholder() {
			return nil
		}
		if !aligned && it.first > *next {
			if err := align(); err != nil {
				return err
			}
		}
		aligned = true
		if it.first > *next {
			return errAgain
		}
		if it.first < *next {
			return it.corrupt(fmt.Sprintf("is in the place of event %d", *next))
		}
		return take(it)
	})
	if err == nil && !aligned {
		return align()
	}
	return err
}

// truncated returns the first number after the removed events, given an item without its events.
func (p *layout) truncated(ctx context.Context, id aggregate.ID, blank *item) error {
	it, err := p.GetItem(ctx, p.Config.Tables.Journal, p.key(id, 1))
	if err != nil {
		return err
	}
	before, _ := table.UintOf(it[attrBefore])
	// A truncation writes this value before it removes events.
	if before <= blank.last() {
		return blank.corrupt("has no events, although the first item does not say that they were removed")
	}
	return &journaltype.TruncatedError{ID: id, Before: before}
}

func (p *layout) EncodingAt(ctx context.Context, id aggregate.ID, number uint64) (string, error) {
	it, err := p.commitAt(ctx, id, number)
	if err != nil {
		return "", err
	}
	if it.lacksEvents() {
		row, err := p.latest(ctx, id)
		if err != nil || row == nil || row.snapshot == nil {
			return "", err
		}
		return row.snapshot.Encoding, nil
	}
	records, err := p.recordsOf(it)
	if err != nil || number < it.first || number > it.last() {
		return "", err
	}
	return records[number-it.first].Encoding, nil
}
