package catalogue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// diff is a difference between two schemas.
type diff struct {
	kind     diffKind
	field    string // the path, empty for the whole payload
	old, new string // the types
}

type diffKind int

const (
	removed       diffKind = iota // a field
	added                         // a required field
	addedOptional                 // a field that is not required
	retyped                       // a field
	nowNull                       // the field allows null
	nowNotNull
	nowOptional
	nowRequired
	renamed // a field, perhaps: old and new are the names
	recased // a field: the names differ in their case
	widened // a number that may be larger, of a message
)

// differences compares two schemas with the references of documents of their own.
func differences(old, current *schema) []diff { return comparison{}.of(old, current) }

// messageDifferences is like differences, and reports also numbers that may be larger.
func messageDifferences(old, current *schema) []diff {
	return comparison{exact: true}.of(old, current)
}

// readDifferences compares a schema with the type as which its payloads are decoded. The case of
// names does not matter, as in encoding/json.
func readDifferences(old, read *schema) []diff { return comparison{reading: true}.of(old, read) }

type comparison struct {
	oldRoot, newRoot *schema
	reading          bool
	exact            bool // also what can be widened is reported
	seen             map[[2]*schema]bool
	diffs            []diff
}

func (c comparison) of(old, current *schema) []diff {
	if old.Protobuf != nil || current.Protobuf != nil {
		return protobufDifferences(old.Protobuf, current.Protobuf)
	}
	c.oldRoot, c.newRoot, c.seen = old, current, map[[2]*schema]bool{}
	c.compare("", old, current)
	return c.diffs
}

func (c *comparison) add(kind diffKind, field, old, current string) {
	c.diffs = append(c.diffs, diff{kind, field, old, current})
}

// resolve follows references, and separates null from the other alternative.
func resolve(root, s *schema) (of *schema, null bool) {
	for range mostNested {
		switch {
		case s.Ref == "#":
			s = root
		case s.Ref != "":
			s = cmp.Or(root.Defs.get(strings.TrimPrefix(s.Ref, "#/$defs/")), &schema{})
		case len(s.AnyOf) > 0:
			next := &schema{}
			for _, one := range s.AnyOf {
				if slices.Equal(one.Type, kinds{"null"}) {
					null = true
				} else {
					next = one
				}
			}
			s = next
		default:
			return s, null || slices.Contains(s.Type, "null") || len(s.Type) == 0
		}
	}
	return &schema{}, true
}

func (c *comparison) compare(path string, old, current *schema) {
	old, oldNull := resolve(c.oldRoot, old)
	current, newNull := resolve(c.newRoot, current)
	pair := [2]*schema{old, current}
	if c.seen[pair] { // at another place, which may have allowed null
		c.nullness(path, oldNull, newNull)
		return
	}
	c.seen[pair] = true
	switch from, to := kindText(old), kindText(current); {
	case from == to:
	case widens(old, current):
		if c.exact {
			c.add(widened, path, from, to)
		}
	default:
		if c.reading && (from == anyJSON || to == anyJSON) {
			return
		}
		if !c.reading || !reads(from, to) {
			c.add(retyped, path, from, to)
			return
		}
		c.readAsMap(path, old, current)
	}
	c.nullness(path, oldNull, newNull)
	if old.Items != nil && current.Items != nil {
		c.compare(path+"[]", old.Items, current.Items)
	}
	if old.AdditionalProperties != nil && current.AdditionalProperties != nil {
		c.compare(path+"{}", old.AdditionalProperties, current.AdditionalProperties)
	}
	if !c.reading || current.AdditionalProperties == nil {
		c.fields(path, old, current)
	}
}

func (c *comparison) nullness(path string, old, current bool) {
	if old && !current {
		c.add(nowNotNull, path, "", "")
	}
	if !old && current {
		c.add(nowNull, path, "", "")
	}
}

// reads reports whether values of a type can also be read as another type without a loss.
func reads(from, to string) bool {
	switch {
	case strings.HasPrefix(from, "integer"):
		return strings.HasPrefix(to, "number")
	case strings.HasPrefix(from, "number"):
		return to == "number"
	case strings.HasPrefix(from, "string"):
		return to == "string"
	case strings.HasPrefix(from, "array"):
		return to == "array"
	case strings.HasPrefix(from, "map"):
		return to == "map"
	}
	return from == "object" && to == "map"
}

// readAsMap compares the fields of an object with the values of a map.
func (c *comparison) readAsMap(path string, old, as *schema) {
	if as.AdditionalProperties == nil {
		return
	}
	for _, field := range old.Properties {
		c.compare(strings.TrimPrefix(path+"."+field.name, "."), field.schema, as.AdditionalProperties)
	}
}

func (c *comparison) fields(path string, old, current *schema) {
	if path != "" {
		path += "."
	}
	var gone, come []property
	for _, field := range old.Properties {
		now := find(current.Properties, field.name)
		if now == nil {
			gone = append(gone, field)
			continue
		}
		if now.name != field.name && !c.reading {
			c.add(recased, path+field.name, field.name, now.name)
		}
		before, after := slices.Contains(old.Required, field.name), slices.Contains(current.Required, now.name)
		c.field(path+field.name, field.schema, now.schema, after)
		switch {
		case before && !after && !isNullable(c.newRoot, now.schema):
			c.add(nowOptional, path+field.name, "", "")
		case after && !before && !isNullable(c.oldRoot, field.schema):
			c.add(nowRequired, path+field.name, "", "")
		}
	}
	for _, field := range current.Properties {
		if find(old.Properties, field.name) == nil {
			come = append(come, field)
		}
	}
	if !c.reading && len(gone) == 1 && len(come) == 1 && c.equal(gone[0].schema, come[0].schema) {
		c.add(renamed, path+gone[0].name, gone[0].name, come[0].name)
		return
	}
	for _, field := range gone {
		c.add(removed, path+field.name, "", "")
	}
	for _, field := range come {
		kind := addedOptional
		if slices.Contains(current.Required, field.name) {
			kind = added
		}
		of, _ := resolve(c.newRoot, field.schema)
		c.add(kind, path+field.name, "", kindText(of))
	}
}

// field compares a field of two objects. If it is not required, null is the same as a missing
// field, unless the type refuses null.
func (c *comparison) field(path string, old, current *schema, required bool) {
	begin := len(c.diffs)
	c.compare(path, old, current)
	if of, _ := resolve(c.newRoot, current); required || refusesNull(of) {
		return
	}
	of := slices.DeleteFunc(c.diffs[begin:], func(d diff) bool { return d.kind == nowNotNull && d.field == path })
	c.diffs = c.diffs[:begin+len(of)]
}

// refusesNull reports whether aggregate.JSON returns an error for a null where a schema does not
// allow it. Types that decode themselves do not.
func refusesNull(s *schema) bool {
	bySelf := s.Format == textFormat || s.Format == timeFormat || s.Format == "" && slices.Contains(s.Type, "integer")
	return !bySelf
}

// find returns the property of a name. As in encoding/json, one whose name differs in its case is
// the second choice.
func find(in properties, name string) *property {
	var found *property
	for i := range in {
		if in[i].name == name {
			return &in[i]
		}
		if found == nil && strings.EqualFold(in[i].name, name) {
			found = &in[i]
		}
	}
	return found
}

func isNullable(root, s *schema) bool {
	_, null := resolve(root, s)
	return null
}

func (c *comparison) equal(old, current *schema) bool {
	of := comparison{oldRoot: c.oldRoot, newRoot: c.newRoot, seen: map[[2]*schema]bool{}}
	of.compare("", old, current)
	return len(of.diffs) == 0
}

const anyJSON = "any JSON"

// kindText returns the type of a schema, without that of its parts and without null.
func kindText(s *schema) string {
	var texts []string
	for _, one := range s.Type {
		switch {
		case one == null:
			continue
		case one == "array" && s.MinItems != nil:
			one = fmt.Sprintf("array of %d", *s.MinItems)
		case one == "object" && s.AdditionalProperties != nil:
			one = "map"
			if s.PropertyNames != nil {
				one += " with the keys " + s.PropertyNames.Format
			}
		case one == "string" && s.Format != "" && s.Format != textFormat && s.Format != timeFormat:
			one += " (quoted " + s.Format + ")"
		case cmp.Or(s.Format, s.ContentEncoding) != "":
			one += " (" + cmp.Or(s.Format, s.ContentEncoding) + ")"
		}
		texts = append(texts, one)
	}
	if len(texts) == 0 {
		return anyJSON
	}
	return strings.Join(texts, " or ")
}

// widens reports whether each number of an old format is one of the new format.
func widens(old, current *schema) bool {
	if old.PropertyNames != nil && current.PropertyNames != nil {
		old, current = old.PropertyNames, current.PropertyNames
	}
	from, to := bits(old.Format), bits(current.Format)
	switch {
	case slices.Contains(old.Type, "string") != slices.Contains(current.Type, "string"):
		return false // one of them is quoted
	case from.size == 0 || to.size == 0:
		return old.Format == "float" && current.Format == "double"
	case from.unsigned && !to.unsigned:
		return to.size > from.size
	}
	return from.unsigned == to.unsigned && to.size >= from.size
}

type integerFormat struct {
	size     int
	unsigned bool
}

func bits(format string) (of integerFormat) {
	name, unsigned := strings.CutPrefix(format, "u")
	if _, err := fmt.Sscanf(name, "int%d", &of.size); err != nil {
		return integerFormat{}
	}
	of.unsigned = unsigned
	return of
}
