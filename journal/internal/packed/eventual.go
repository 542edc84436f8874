package packed

import (
	"context"
	"errors"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Items of commits always stay in their places. A read may find all commits from the first one
// without a gap, and the last of them whole. Then these commits were the whole aggregate once,
// however old the read of each page is. The next place shows whether they still are.

func (p *layout) Peek(
	ctx context.Context, id aggregate.ID, exact bool, begin func(journaltype.Head) (uint64, error), apply func(*journaltype.Record) error,
) (storage.Loaded, error) {
	name := p.Config.Tables.Snapshot
	out, err := p.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &name, Key: p.snapshotKey(id, latestSnapshot), ConsistentRead: &exact,
	})
	if err != nil {
		return storage.Loaded{}, dynamo.Explain(err, name)
	}
	var row *snapshotRow
	if out.Item != nil {
		if row, err = p.snapshotOf(out.Item); err != nil || !row.deleted.IsZero() {
			return storage.Loaded{}, engine.ErrDiscard
		}
	}
	l := &load{layout: p, id: id, row: row, begin: begin, apply: apply, ignored: map[string]bool{}, peeks: true}
	err = l.run(ctx)
	switch {
	case err == nil:
		return l.loaded(), nil
	case errors.Is(err, journaltype.ErrNotFound):
		return storage.Loaded{Commands: l.commands}, err
	case errors.Is(err, errAgain), errors.As(err, new(*journaltype.DeletedError)):
		return storage.Loaded{}, engine.ErrDiscard
	}
	return storage.Loaded{}, err
}

func (p *layout) Continue(
	ctx context.Context, id aggregate.ID, from storage.Loaded, apply func(*journaltype.Record) error,
) (storage.Loaded, error) {
	if p.isRestored(ctx) {
		return storage.Loaded{}, journaltype.ErrRestored
	}
	wait := table.UntilShown()
	for {
		l := &load{layout: p, id: id, apply: apply, begun: true, version: from.Version, commands: from.Commands.With(from.Version)}
		err := l.read(ctx, from.Version+1)
		if err == nil && l.last != nil && l.last.isTombstone() {
			return storage.Loaded{}, l.last.deletedError()
		}
		if err == nil && l.last != nil && l.last.isTorn() {
			l.missing, err = l.version+1, errAgain
		}
		from = l.loaded()
		switch {
		case err == nil:
			return from, nil
		case !errors.Is(err, errAgain):
			return storage.Loaded{}, err
		case l.missing == 0: // events were removed
			return storage.Loaded{}, engine.ErrDiscard
		}
		if err := p.awaitItem(ctx, id, l.missing, wait); err != nil {
			return storage.Loaded{}, err
		}
	}
}

func (p *layout) Next(ctx context.Context, id aggregate.ID, version uint64) (bool, error) {
	if p.isRestored(ctx) {
		return false, journaltype.ErrRestored
	}
	name, key := p.Config.Tables.Journal, p.key(id, version+1)
	items, err := p.TransactGetUnless(ctx, name, []table.Item{key}, func(ctx context.Context, _ int) error {
		raw, err := p.GetItem(ctx, name, key)
		if err == nil && raw != nil {
			err = errAgain
		}
		return err
	})
	if errors.Is(err, errAgain) {
		return true, nil
	}
	return len(items) > 0, err
}

func (p *layout) Executed(ctx context.Context, id aggregate.ID, commands *storage.Commands, commandID string) (storage.Command, bool, error) {
	return p.executed(ctx, id, commands, commandID)
}

// read reads the items from a number on.
func (l *load) read(ctx context.Context, from uint64) error {
	return l.query(ctx, l.id, strconv.FormatUint(from, 10), endOfNumbers, func(in *dynamodb.QueryInput) {
		in.ConsistentRead = aws.Bool(!l.peeks)
	}, func(it *item, err error) error {
		if err == nil {
			err = l.take(ctx, it)
		}
		if err != nil && l.peeks {
			return errAgain // the read may be old
		}
		return err
	})
}

// loaded returns the result of the load so far.
func (l *load) loaded() storage.Loaded {
	l.commands.Version = l.version
	l.replayed.Units = float64((l.replayed.Bytes + readUnit - 1) / readUnit)
	if l.peeks {
		l.replayed.Units /= 2
	}
	return storage.Loaded{Version: l.version, Commands: l.commands, Worth: l.replayed}
}

// readUnit is how many bytes a strongly consistent read unit pays for.
const readUnit = 4 << 10
