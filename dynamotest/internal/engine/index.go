package engine

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// index returns the index with that name, nil if there is none.
func (t *table) index(name string) *index {
	for _, ix := range t.indexes {
		if ix.name == name {
			return ix
		}
	}
	return nil
}

// build fills a new index.
func (t *table) build(ix *index) {
	ix.rows = newRows()
	t.rows.Scan(func(r *row) bool {
		ix.move(nil, ix.entry(t, r))
		return true
	})
}

// entry returns the index entry of a row, nil if the row lacks a key attribute of the index. An
// item that is older than the index can have a key that the index does not allow: of another type,
// empty or too long. The index omits it.
func (ix *index) entry(t *table, r *row) *row {
	if r == nil {
		return nil
	}
	for i, a := range ix.key.attributes() {
		v := r.item[a.name]
		if v == nil || value.Type(v) != string(a.kind) || value.Size(v) == 0 || checkKeySize(i, v) != nil {
			return nil
		}
	}
	e := &row{position: ix.key.positionOf(r.item), item: r.item, size: r.size}
	e.tie = tieOf(r.position)
	if ix.projection.ProjectionType != types.ProjectionTypeAll {
		e.item = ix.project(t, r.item)
		e.size = value.ItemSize(e.item)
	}
	return e
}

func (ix *index) project(t *table, item value.Item) value.Item {
	projected := make(value.Item, 4+len(ix.projection.NonKeyAttributes))
	keep := func(name string) {
		if v, ok := item[name]; ok {
			projected[name] = v
		}
	}
	for _, a := range t.key.attributes() {
		keep(a.name)
	}
	for _, a := range ix.key.attributes() {
		keep(a.name)
	}
	if ix.projection.ProjectionType == types.ProjectionTypeInclude {
		for _, name := range ix.projection.NonKeyAttributes {
			keep(name)
		}
	}
	return projected
}

// projects reports whether the index contains an attribute.
func (ix *index) projects(t *table, name string) bool {
	if ix.projection.ProjectionType == types.ProjectionTypeAll {
		return true
	}
	isKey := func(a keyAttribute) bool { return a.name == name }
	return slices.ContainsFunc(t.key.attributes(), isKey) || slices.ContainsFunc(ix.key.attributes(), isKey) ||
		ix.projection.ProjectionType == types.ProjectionTypeInclude && slices.Contains(ix.projection.NonKeyAttributes, name)
}

// move replaces an entry by another one. Each may be nil.
func (ix *index) move(old, next *row) {
	if old != nil && (next == nil || next.position != old.position) {
		ix.rows.Delete(old)
	}
	if next != nil {
		ix.rows.Set(next)
	}
	ix.size += sizeOf(next) - sizeOf(old)
}

func sizeOf(r *row) int64 {
	if r == nil {
		return 0
	}
	return int64(r.size)
}

// moveUnits returns the write units that a change costs the index: none if the entry stays the
// same, and those of two writes if the entry moves. Source: Developer Guide, "Using Global
// Secondary Indexes in DynamoDB", write capacity units.
func moveUnits(old, next *row) float64 {
	switch {
	case old == nil && next == nil:
		return 0
	case old == nil:
		return writeUnits(next.size)
	case next == nil:
		return writeUnits(old.size)
	case old.position != next.position:
		return writeUnits(old.size) + writeUnits(next.size)
	case value.EqualItems(old.item, next.item):
		return 0
	}
	return writeUnits(max(old.size, next.size))
}
