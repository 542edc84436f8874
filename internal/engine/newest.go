package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// NewestAtOnce is the number of partitions of the tail that are read at the same time.
const NewestAtOnce = 16

// Newest implements Journal.Newest.
func (j *Engine) Newest(ctx context.Context, aggregateType string, limit int) iter.Seq2[*journaltype.Record, error] {
	return func(yield func(*journaltype.Record, error) bool) {
		err := (aggregate.ID{Type: aggregateType, Value: "x"}).Validate()
		if err == nil && limit < 1 {
			err = &journaltype.ConfigError{Field: "limit", Reason: fmt.Sprintf("of Newest is %d: use 1 or more", limit)}
		}
		if err == nil {
			err = j.Layout.Newest(ctx, aggregateType, limit, func(page storage.TailPage) error { return j.yieldPage(ctx, page, yield) })
		}
		if err != nil && !errors.Is(err, ErrStop) {
			yield(nil, fmt.Errorf("read newest events of %s: %w", aggregateType, err))
		}
	}
}

// yieldPage yields the corrupt items of a page, and then its events.
func (j *Engine) yieldPage(ctx context.Context, page storage.TailPage, yield func(*journaltype.Record, error) bool) error {
	for _, item := range page.Corrupt {
		if !yield(nil, item) {
			return ErrStop
		}
	}
	for _, stored := range page.Records {
		if !yield(j.Decode(ctx, stored)) {
			return ErrStop
		}
	}
	return nil
}

// SortNewest sorts records so that the newest is first. Among records of the same time, the events
// of an aggregate stay together, the last one first.
func SortNewest(records []*journaltype.Record) {
	slices.SortStableFunc(records, func(a, b *journaltype.Record) int {
		return cmp.Or(b.WrittenAt.Compare(a.WrittenAt), strings.Compare(b.Aggregate.Value, a.Aggregate.Value), cmp.Compare(b.Number, a.Number))
	})
}
