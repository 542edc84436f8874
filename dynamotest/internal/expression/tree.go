package expression

import (
	"cmp"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// tree is a set of document paths, none of which contains another.
type tree struct {
	branches []branch // branches of a list are in the order of its indexes
}

type branch struct {
	element element
	// leaf is the number of the path that ends here; -1 if none does.
	leaf int
	tree tree
}

const noLeaf = -1

func newTree(paths []path) tree {
	var t tree
	for i, p := range paths {
		t.add(p, i)
	}
	t.sort()
	return t
}

func (t *tree) add(p path, leaf int) {
	i := slices.IndexFunc(t.branches, func(b branch) bool { return b.element == p[0] })
	if i < 0 {
		i = len(t.branches)
		t.branches = append(t.branches, branch{element: p[0], leaf: noLeaf})
	}
	if len(p) == 1 {
		t.branches[i].leaf = leaf
		return
	}
	t.branches[i].tree.add(p[1:], leaf)
}

func (t *tree) sort() {
	slices.SortStableFunc(t.branches, func(a, b branch) int { return cmp.Compare(a.element.index, b.element.index) })
	for i := range t.branches {
		t.branches[i].tree.sort()
	}
}

// names returns the attributes with which the paths begin.
func (t *tree) names() []string {
	names := make([]string, len(t.branches))
	for i, b := range t.branches {
		names[i] = b.element.name
	}
	return names
}

// project returns the values at the paths, with the maps and lists around them. Elements of lists
// move together. It returns nil if the paths have no values.
func (t *tree) project(v types.AttributeValue) types.AttributeValue {
	var list []types.AttributeValue
	var item value.Item
	for _, b := range t.branches {
		found := b.element.in(v)
		if found != nil && b.leaf == noLeaf {
			found = b.tree.project(found)
		}
		switch {
		case found == nil:
		case b.element.isIndex():
			list = append(list, found)
		default:
			if item == nil {
				item = make(value.Item, len(t.branches))
			}
			item[b.element.name] = found
		}
	}
	switch {
	case list != nil:
		return &types.AttributeValueMemberL{Value: list}
	case item != nil:
		return &types.AttributeValueMemberM{Value: item}
	default:
		return nil
	}
}

// projectItem does the same as project for an item. The result is never nil.
func (t *tree) projectItem(item value.Item) value.Item {
	if m, ok := t.project(&types.AttributeValueMemberM{Value: item}).(*types.AttributeValueMemberM); ok {
		return m.Value
	}
	return value.Item{}
}

// change is the change of the value at a path.
type change struct {
	kind  changeKind
	value types.AttributeValue
}

type changeKind uint8

const (
	keep changeKind = iota
	put
	remove
)

// write returns a copy of a map or list with changes, one for each path. The paths must lead to
// places that can be written.
func (t *tree) write(v types.AttributeValue, changes []change) types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: t.writeMap(v.Value, changes)}
	case *types.AttributeValueMemberL:
		return &types.AttributeValueMemberL{Value: t.writeList(v.Value, changes)}
	default:
		return v
	}
}

func (t *tree) writeMap(m value.Item, changes []change) value.Item {
	out := make(value.Item, len(m)+len(t.branches))
	maps.Copy(out, m)
	for _, b := range t.branches {
		name := b.element.name
		if b.leaf == noLeaf {
			out[name] = b.tree.write(out[name], changes)
			continue
		}
		switch c := changes[b.leaf]; c.kind {
		case put:
			out[name] = c.value
		case remove:
			delete(out, name)
		}
	}
	return out
}

// writeList uses the original indexes of the elements. Elements beyond the last one are appended in
// the order of their indexes.
func (t *tree) writeList(list []types.AttributeValue, changes []change) []types.AttributeValue {
	out := slices.Clone(list)
	removed := false
	for _, b := range t.branches {
		i := b.element.index
		if b.leaf == noLeaf {
			out[i] = b.tree.write(out[i], changes)
			continue
		}
		switch c := changes[b.leaf]; {
		case c.kind == put && i < len(list):
			out[i] = c.value
		case c.kind == put:
			out = append(out, c.value)
		case c.kind == remove && i < len(list):
			out[i], removed = nil, true
		}
	}
	if removed {
		out = slices.DeleteFunc(out, func(v types.AttributeValue) bool { return v == nil })
	}
	return out
}
