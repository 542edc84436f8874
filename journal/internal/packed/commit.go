package packed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// commit is a commit in the form in which it is sent. It is one PutItem, or a transaction if
// it has several items or the caller added writes.
type commit struct {
	p *layout
	engine.Draft

	// items of the commit, in order; or the placeholder of a command without events
	items       []table.Item
	put         *dynamodb.PutItemInput
	transaction *dynamodb.TransactWriteItemsInput // nil if put is sent
	writes      int                               // index of the first of the caller's own actions
	// size is in bytes before compression, of all items and writes, without the commands in noted.
	size int
	// commands of the placeholder that the commit replaces
	noted []storage.DatedCommand
	// whether that placeholder says that there are guards
	guards bool
	// commands for which this commit has written guards
	guarded map[string]bool
	// the largest number of commands that the commit notes; beyond it, they become guards
	mostNoted int
	// known holds the commands of the aggregate before the commit, and then those after it. It is
	// nil if they are not known.
	known *storage.Commands
}

func (p *layout) Part(ctx context.Context, d engine.Draft) (engine.Part, error) {
	if p.isRestored(ctx) {
		return nil, fmt.Errorf("append to %s, nothing written: %w", d.Aggregate, journaltype.ErrRestored)
	}
	c := &commit{p: p, Draft: d}
	if err := c.lookForCommand(ctx); err != nil {
		return nil, err
	}
	if err := c.prove(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// isRestored reports whether the journal is known to have been restored since it was opened. The
// partitions that a writer knows are still right after a restore. If the descriptor cannot be read,
// a writer waits for it once and not for each commit.
func (p *layout) isRestored(ctx context.Context) bool {
	patience := time.Duration(math.MaxInt64)
	if p.tailing.failed() == nil {
		patience = mostUnwatched
	}
	_ = p.check(ctx, patience)
	return p.tailing.isStale()
}

func (c *commit) Actions() []types.TransactWriteItem { return c.transaction.TransactItems }

func (c *commit) Bytes() int { return c.size }

func (c *commit) Finish(ctx context.Context) storage.Receipt {
	c.remember()
	c.p.storeSnapshot(ctx, c)
	return c.Receipt
}

// lookForCommand returns an error if the command was executed before.
func (c *commit) lookForCommand(ctx context.Context) error {
	if known := c.Commands; known != nil && known.Version == c.Expected {
		c.known = known
	}
	if c.CommandID == "" {
		return nil
	}
	if c.known == nil {
		var err error
		if c.known, err = c.p.commands(ctx, c.Aggregate); err != nil {
			return c.notWritten(err)
		}
	}
	earlier, executed, err := c.p.executed(ctx, c.Aggregate, c.known, c.CommandID)
	if err != nil {
		return c.notWritten(err)
	}
	if executed {
		return c.duplicate(earlier)
	}
	return nil
}

// prove verifies that the expected version is, or was, the version of the aggregate. A free place
// for the next item does not prove this.
func (c *commit) prove(ctx context.Context) error {
	if c.Expected == 0 || c.Proven {
		return nil
	}
	err := c.p.isAtVersion(ctx, storage.Place{Aggregate: c.Aggregate, Version: c.Expected})
	if err != nil && !errors.Is(err, journaltype.ErrConflict) {
		return c.notWritten(err)
	}
	return err
}

// isAtVersion returns a *journal.ConflictError if an aggregate is not at that version.
func (p *layout) isAtVersion(ctx context.Context, place storage.Place) error {
	actual, err := p.Version(ctx, place.Aggregate)
	if errors.Is(err, journaltype.ErrNotFound) {
		actual, err = 0, nil
	}
	if err == nil && actual != place.Version {
		err = &journaltype.ConflictError{ID: place.Aggregate, Expected: place.Version, Actual: actual}
	}
	return err
}

func (c *commit) notWritten(err error) error {
	return fmt.Errorf("append to %s, nothing written: %w", c.Aggregate, err)
}

// remember adds the command of the written commit to the known commands.
func (c *commit) remember() {
	switch {
	case c.known == nil:
		return
	case c.CommandID == "":
		c.known = c.known.With(c.Receipt.Version, c.noted...)
	default:
		c.known = c.known.With(c.Receipt.Version, append(slices.Clip(c.noted), c.dated())...)
	}
	c.known.Guards = c.known.Guards || c.guards // With has made a copy
	c.Receipt.Commands = c.known
}

func (c *commit) dated() storage.DatedCommand {
	return storage.DatedCommand{
		Command: storage.Command{ID: c.p.stored(c.CommandID), CommitID: c.Receipt.CommitID, First: c.Expected + 1, Version: c.Receipt.Version},
		At:      c.Receipt.OccurredAt,
		Keep:    c.p.Config.CommandRetention,
	}
}

func (c *commit) duplicate(earlier storage.Command) error {
	return &journaltype.DuplicateCommandError{
		ID: c.Aggregate, CommandID: c.CommandID, CommitID: earlier.CommitID, First: earlier.First, Version: earlier.Version,
	}
}

func (c *commit) Build(at table.Dates) error {
	c.Date(at)
	switch {
	case len(c.Events) > 0:
		if err := c.pack(); err != nil {
			return err
		}
	case c.CommandID != "":
		placeholder := c.p.key(c.Aggregate, c.Expected+1)
		placeholder[attrCommit], placeholder[attrCount] = commitValue(c.Receipt.CommitID), table.NumberValue(0)
		noted, err := c.p.commandsValue([]storage.DatedCommand{c.dated()})
		if err != nil {
			return fmt.Errorf("append to %s: %w: %w", c.Aggregate, journaltype.ErrInvalidCommit, err)
		}
		placeholder[attrNoted] = noted
		c.items = []table.Item{placeholder}
	}
	c.size = 0
	for _, it := range c.items {
		c.size += table.ItemSize(it)
	}
	for _, w := range c.Writes {
		c.size += table.WriteSize(w)
	}
	if c.size > storage.MaxCommitBytes {
		return &journaltype.TooLargeError{ID: c.Aggregate, What: "the commit", Size: c.size, Limit: storage.MaxCommitBytes, Unit: storage.UnitBytes}
	}
	if !slices.ContainsFunc(c.Encoded, func(e storage.Event) bool { return e.Encoding != "" }) {
		c.p.compressEvents(c.items)
	}
	if len(c.items) == 1 && len(c.Writes) == 0 && c.Beside == nil {
		c.put = table.Alone(c.p.PutNew(c.p.Config.Tables.Journal, c.items[0]))
		return nil
	}
	c.transaction = &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(c.Receipt.CommitID)}
	for _, it := range c.items {
		c.transaction.TransactItems = append(c.transaction.TransactItems, c.p.PutNew(c.p.Config.Tables.Journal, it))
	}
	if len(c.items) == 0 {
		c.transaction.TransactItems = append(c.transaction.TransactItems, c.checkEnd())
	}
	c.writes = len(c.transaction.TransactItems)
	c.transaction.TransactItems = append(c.transaction.TransactItems, c.Writes...)
	return nil
}

func (p *layout) Unchanged(ctx context.Context, places []storage.Place) error {
	if p.isRestored(ctx) {
		return journaltype.ErrRestored
	}
	keys, at := make([]table.Item, len(places)), map[aggregate.ID]uint64{}
	kept, within := errgroup.WithContext(ctx)
	kept.SetLimit(table.ReadsAtOnce)
	for i, place := range places {
		keys[i], at[place.Aggregate] = p.key(place.Aggregate, place.Version+1), place.Version
		// After a restore the next place may be free although the version is wrong.
		if place.Kept {
			kept.Go(func() error { return p.isAtVersion(within, place) })
		}
	}
	if err := kept.Wait(); err != nil {
		return err
	}
	items, err := p.TransactGetUnless(ctx, p.Config.Tables.Journal, keys, func(ctx context.Context, key int) error {
		raw, err := p.GetItem(ctx, p.Config.Tables.Journal, keys[key])
		if err != nil || raw == nil {
			return err
		}
		return p.follows(raw, at)
	})
	if err != nil {
		return err
	}
	for _, raw := range items {
		if err := p.follows(raw, at); err != nil {
			return err
		}
	}
	return nil
}

// follows returns a *journal.ConflictError if an item follows the version of its aggregate. A
// placeholder does not count.
func (p *layout) follows(raw table.Item, versions map[aggregate.ID]uint64) error {
	it, err := p.parse(raw)
	switch {
	case err != nil:
		return err
	case it.isTombstone():
		return &journaltype.ConflictError{ID: it.id, Expected: versions[it.id]}
	case !it.isPlaceholder():
		return &journaltype.ConflictError{ID: it.id, Expected: versions[it.id], Actual: max(it.last(), it.partOf.last)}
	}
	return nil
}

// checkEnd checks that no commit follows the expected version. It is the action for an aggregate
// that gets no events. Placeholders may follow.
func (c *commit) checkEnd() types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName:           &c.p.Config.Tables.Journal,
		Key:                 c.p.key(c.Aggregate, c.Expected+1),
		ConditionExpression: aws.String("attribute_not_exists(#pk) OR #n = :none AND attribute_not_exists(#d)"),
		ExpressionAttributeNames: table.AttributeNames("#pk", c.p.Config.Attributes.PartitionKey, "#n", attrCount,
			"#d", attrDeleted),
		ExpressionAttributeValues:           table.Item{":none": table.NumberValue(0)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// pack puts the events into one item, or into as few as possible.
func (c *commit) pack() error {
	events := make([][]byte, len(c.Encoded))
	for i := range c.Encoded {
		var err error
		if events[i], err = packEvent(&c.Encoded[i], nil); err != nil {
			return fmt.Errorf("append to %s: %w: event %d of the commit: %w", c.Aggregate, journaltype.ErrInvalidCommit, i+1, err)
		}
	}
	items, large, err := c.p.itemsOf(c.Aggregate, c.Expected+1, commitValue(c.Receipt.CommitID), c.Receipt.OccurredAt, events, c.CommandID)
	if err != nil {
		return err
	}
	if large > 0 {
		return &journaltype.TooLargeError{
			ID: c.Aggregate, What: fmt.Sprintf("event %d of the commit, %q,", large, c.Encoded[large-1].Type),
			Size: len(events[large-1]), Limit: storage.MaxItemBytes, Unit: storage.UnitBytes,
		}
	}
	c.items = items
	return nil
}

// itemsOf makes the items of a commit. If an event is too large, large is its position, from 1.
func (p *layout) itemsOf(
	id aggregate.ID, first uint64, commit types.AttributeValue, at time.Time, events [][]byte, commandID string,
) (items []table.Item, large int, err error) {
	bare := p.commitItem(id, first, commit, at, commandID)
	room := storage.MaxItemBytes - table.ItemSize(bare) - itemSpare
	for from := 0; from < len(events); {
		to, size := from, 0
		for to < len(events) && size+len(events[to]) <= room {
			size += len(events[to])
			to++
		}
		if to == from {
			return nil, to + 1, nil
		}
		joined, err := joinEvents(events[from:to])
		if err != nil {
			return nil, 0, err
		}
		it := p.commitItem(id, first+uint64(from), commit, at, commandID)
		it[attrCount] = table.NumberValue(to - from)
		if to-from < len(events) {
			it[attrFirst], it[attrLast] = table.NumberValue(first), table.NumberValue(first+uint64(len(events))-1)
		}
		p.setEvents(it, joined)
		items = append(items, it)
		from = to
	}
	return items, 0, nil
}

// itemSpare is the size of attributes that only some items have, and of the framing of events.
const itemSpare = 128

// setEvents stores the events in the attribute that the tail index contains, if the item is small.
func (p *layout) setEvents(it table.Item, joined []byte) {
	it[attrSmall] = table.BinaryValue(joined)
	if table.ItemSize(it) > projectedBytes {
		delete(it, attrSmall)
		it[attrLarge] = table.BinaryValue(joined)
		it[attrSize] = table.NumberValue(table.ItemSize(it)>>10 + 1)
	}
}

// commitItem returns the item of a commit without its events.
func (p *layout) commitItem(id aggregate.ID, first uint64, commit types.AttributeValue, at time.Time, commandID string) table.Item {
	it := p.key(id, first)
	it[attrCommit] = commit
	it[attrCount] = table.NumberValue(0)
	it[attrTime] = table.NumberValue(at.UnixMilli())
	it[attrTail] = table.StringValue(partKey(id.Type, p.tailPart(id, at)))
	if commandID != "" {
		it[attrID] = p.commandValue(p.stored(commandID))
		if keep := p.Config.CommandRetention; keep > 0 {
			it[attrHold] = table.NumberValue(secondsOf(keep))
		}
	}
	if first == 1 {
		it[attrListed] = table.StringValue(partKey(id.Type, p.Shard(id)))
	}
	return it
}

func (p *layout) LookFor(ctx context.Context, unknown *journaltype.OutcomeUnknownError) (written, executed bool, err error) {
	written, err = p.isAt(ctx, unknown.ID, unknown.First, unknown.CommitID)
	if written {
		return true, true, nil
	}
	if err == nil && unknown.CommandID != "" {
		var c storage.Command
		c, executed, err = p.Command(ctx, unknown.ID, unknown.CommandID)
		written = executed && c.CommitID == unknown.CommitID
	}
	return written, executed, err
}

func (p *layout) IsOwn(c *storage.Commit, name string, key table.Item) bool {
	partition, number := p.placeOf(key)
	if partition != partitionOf(c.Aggregate) || name != p.Config.Tables.Journal {
		return false
	}
	n, err := strconv.ParseUint(number, 10, 64)
	return err == nil && n > c.Expected && n <= max(c.Version(), c.Expected+1)
}

func (p *layout) EventSize(id aggregate.ID, e storage.Event, overhead int) int {
	packed, err := packEvent(&e, nil)
	if err != nil {
		return storage.MaxItemBytes + 1
	}
	return len(packed) + overhead + table.ItemSize(p.commitItem(id, 1, commitValue(longestCommitID), time.UnixMilli(0), "")) + itemSpare
}

// longestCommitID has as many characters as DynamoDB allows for a ClientRequestToken.
const longestCommitID = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
