package packed

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// errAgain means that a load must start again.
var errAgain = errors.New("begin again")

// Load reads the latest snapshot by key, and the later items with one Query. The Query begins with
// the item that the snapshot ends with, which shows whether the snapshot belongs to this history.
// If a snapshot cannot be used, load tries the one that stands for truncated events, and then all
// events.
func (p *layout) Load(
	ctx context.Context, id aggregate.ID, begin func(journaltype.Head) (uint64, error), apply func(*journaltype.Record) error,
) (storage.Loaded, error) {
	row, err := p.latest(ctx, id)
	if err != nil {
		return storage.Loaded{}, err
	}
	if row != nil && !row.deleted.IsZero() {
		return storage.Loaded{}, p.deletedSince(ctx, id)
	}
	ignored := map[string]bool{} // names of snapshots
	wait := table.UntilShown()
	for {
		l := &load{layout: p, id: id, row: row, begin: begin, apply: apply, ignored: ignored}
		err := l.run(ctx)
		switch {
		case err == nil:
			return l.loaded(), nil
		case errors.Is(err, journaltype.ErrNotFound):
			return storage.Loaded{Commands: l.commands}, err
		case !errors.Is(err, errAgain):
			return storage.Loaded{}, err
		}
		if l.missing > 0 {
			if err := p.awaitItem(ctx, id, l.missing, wait); err != nil {
				return storage.Loaded{}, err
			}
		}
		if row, err = p.usable(ctx, id, ignored); err != nil {
			return storage.Loaded{}, err
		}
	}
}

// usable returns the snapshot of the latest event that is not ignored.
func (p *layout) usable(ctx context.Context, id aggregate.ID, ignored map[string]bool) (*snapshotRow, error) {
	latest, base, err := p.snapshots(ctx, id)
	if err != nil {
		return nil, err
	}
	if latest != nil && !latest.deleted.IsZero() {
		return nil, p.deletedSince(ctx, id)
	}
	for _, row := range newestFirst(latest, base) {
		if !ignored[row.name()] {
			return row, nil
		}
	}
	if latest != nil { // it has the list of redundant snapshots
		latest.snapshot = nil
		return latest, nil
	}
	return nil, nil
}

func (p *layout) deletedSince(ctx context.Context, id aggregate.ID) error {
	end, err := p.end(ctx, id)
	if err == nil && end.isTombstone() {
		return end.deletedError()
	}
	if err == nil {
		err = end.corrupt("is not a tombstone, but the snapshot table shows that the aggregate was deleted")
	}
	return err
}

// load is one attempt at a load.
type load struct {
	*layout
	id      aggregate.ID
	row     *snapshotRow
	begin   func(journaltype.Head) (uint64, error)
	apply   func(*journaltype.Record) error
	ignored map[string]bool

	begun    bool
	version  uint64
	last     *item
	commands *storage.Commands
	missing  uint64 // the number of an event of a transaction that is not visible yet, or 0
	peeks    bool   // see Peek
	replayed storage.Worth
}

func (l *load) run(ctx context.Context) error {
	from := uint64(1)
	if l.row != nil && l.row.snapshot != nil {
		from = l.row.from
	}
	err := l.read(ctx, from)
	switch {
	case err != nil:
		return err
	case l.last == nil && l.row != nil && l.row.snapshot != nil:
		l.ignored[l.row.name()] = true
		return errAgain // the commit that the snapshot ends with does not exist
	case l.last == nil:
		l.commands = cmp.Or(l.commands, &storage.Commands{})
		return notFound(l.id)
	case l.last.isTombstone():
		return l.last.deletedError()
	case l.last.isTorn():
		l.missing = l.last.last() + 1
		return errAgain
	}
	l.version = l.last.last()
	return nil
}

func (l *load) take(ctx context.Context, it *item) error {
	if it.isPlaceholder() && it.last() == l.version {
		if !l.begun && it.first == 1 { // there are no events
			l.commands = &storage.Commands{}
		}
		if l.begun || it.first == 1 {
			it.addTo(l.commands)
		}
		return nil
	}
	l.replayed.Commits++
	l.replayed.Bytes += it.bytes
	if !l.begun {
		if begun, err := l.start(it); !begun || err != nil {
			return err
		}
	}
	it.addTo(l.commands)
	if it.first > l.version+1 {
		l.missing = l.version + 1
		return errAgain
	}
	if it.first <= l.version {
		return it.corrupt(fmt.Sprintf("is in the place of event %d", l.version+1))
	}
	l.last = it
	if it.isTombstone() {
		return nil
	}
	if it.lacksEvents() && !l.peeks {
		return l.skip(ctx, it)
	}
	if it.lacksEvents() {
		return errAgain
	}
	records, err := l.recordsOf(it)
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := l.apply(r); err != nil {
			return err
		}
		l.version = r.Number
	}
	return nil
}

// start begins with the snapshot if the first item is the one that the snapshot ends with. It
// returns false if nothing remains to be done with this item.
func (l *load) start(it *item) (bool, error) {
	l.begun = true
	head := journaltype.Head{Aggregate: l.id}
	if l.row != nil {
		head.Redundant = l.row.kept
	}
	row := l.row
	if row == nil || row.snapshot == nil {
		l.commands = &storage.Commands{}
		_, err := l.begin(head)
		return true, err
	}
	if !row.isOf(it) {
		l.ignored[row.name()] = true
		return false, errAgain
	}
	head.Snapshot, head.Version = row.snapshot, row.snapshot.Number
	number, err := l.begin(head)
	if err != nil {
		return false, err
	}
	if number != row.snapshot.Number {
		l.ignored[row.name()] = true
		return false, errAgain
	}
	l.last, l.version, l.commands = it, number, row.commandsOf()
	it.addTo(l.commands)
	return false, nil
}

// skip finds the snapshot that stands for removed events.
func (l *load) skip(ctx context.Context, blank *item) error {
	end, err := l.end(ctx, l.id)
	if err != nil {
		return err
	}
	if end.isTombstone() {
		return end.deletedError()
	}
	row, err := l.usable(ctx, l.id, l.ignored)
	if err != nil {
		return err
	}
	if row == nil || row.snapshot == nil || row.snapshot.Number < blank.last() {
		return l.truncated(ctx, l.id, blank)
	}
	return errAgain
}
