package classic

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

func (l *layout) Trim(ctx context.Context, id aggregate.ID, before uint64, state *journaltype.Snapshot) error {
	for attempt := 0; ; attempt++ {
		head, err := l.Head(ctx, id)
		switch {
		case err != nil:
			return err
		case !head.DeletedAt.IsZero():
			return engine.DeletedErrorOf(head)
		case !engine.IsTrimmed(head.Snapshot) || len(head.Redundant) > 0:
			return storage.ErrHasState
		case before > head.Version+1:
			return engine.NotCovered(before)
		case head.Snapshot == nil && head.TruncatedBefore > 1:
			return storage.ErrHasState // it has a state or had one
		}
		if before > head.TruncatedBefore {
			update, names, values := l.trimUpdate(before, state)
			err = l.updateHead(ctx, head, update, names, values)
		}
		if err == nil {
			return l.removeEvents(ctx, head, max(before, head.TruncatedBefore), journaltype.RemoveOptions{})
		}
		if !errors.Is(err, journaltype.ErrConflict) || attempt == 9 {
			return err
		}
		if !retry.Sleep(ctx, time.Duration(attempt+1)*10*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// trimUpdate sets the place of truncation, and stores the snapshot that stands for earlier events.
func (l *layout) trimUpdate(before uint64, state *journaltype.Snapshot) (update string, names map[string]string, values table.Item) {
	stored := table.Item{}
	l.setSnapshot(stored, state)
	names, values = table.AttributeNames("#t", attrTruncatedBefore), table.Item{":t": table.NumberValue(before)}
	sets := []string{"#t = :t"}
	for i, name := range slices.Sorted(maps.Keys(stored)) {
		n := strconv.Itoa(i)
		names["#s"+n], values[":s"+n] = name, stored[name]
		sets = append(sets, "#s"+n+" = :s"+n)
	}
	update = "SET " + strings.Join(sets, ", ")
	if _, encoded := stored[engine.AttrEncoding]; !encoded {
		names["#e"] = engine.AttrEncoding
		update += " REMOVE #e" // the encoding of an earlier Trim
	}
	return update, names, values
}
