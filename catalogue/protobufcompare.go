package catalogue

import (
	"fmt"
	"slices"
	"strings"
)

// protobufDifferences compares messages by the numbers of their fields, as their binary form does.
func protobufDifferences(old, current *protobufMessages) (diffs []diff) {
	if old == nil || current == nil {
		return []diff{{kind: retyped, old: protobufText(old), new: protobufText(current)}}
	}
	seen := map[string]bool{}
	var compare func(path, from, to string)
	compare = func(path, from, to string) {
		if seen[from+" "+to] {
			return
		}
		seen[from+" "+to] = true
		before, after := old.message(from), current.message(to)
		for _, f := range before.Fields {
			now := after.field(f.Number)
			where := strings.TrimPrefix(path+"."+f.Name, ".")
			if now == nil {
				diffs = append(diffs, diff{kind: removed, field: where})
				continue
			}
			if now.Required && !f.Required {
				diffs = append(diffs, diff{kind: nowRequired, field: where})
			}
			fromType, toType := elementOf(f.Type), elementOf(now.Type)
			switch {
			case old.has(fromType) && current.has(toType) && strings.TrimSuffix(f.Type, fromType) == strings.TrimSuffix(now.Type, toType):
				compare(where, fromType, toType)
			case f.Type != now.Type:
				diffs = append(diffs, diff{kind: retyped, field: where, old: f.Type, new: now.Type})
			case !seen[fromType]:
				seen[fromType] = true // an enumeration is compared once
				diffs = append(diffs, enumDifferences(where, old.enum(fromType), current.enum(toType))...)
			}
		}
		for _, f := range before.joined(after) {
			diffs = append(diffs, diff{retyped, strings.TrimPrefix(path+"."+f.Name, "."), "a field of its own", "one of " + f.OneOf})
		}
		for _, f := range after.Fields {
			if before.field(f.Number) == nil {
				kind := addedOptional
				if f.Required {
					kind = added
				}
				diffs = append(diffs, diff{kind: kind, field: strings.TrimPrefix(path+"."+f.Name, "."), new: f.Type})
			}
		}
	}
	compare("", old.Message, current.Message)
	return diffs
}

// joined returns the current fields of which an old message may have several, and a current one has
// at most one: each is in a oneof with another field with which it was not before.
func (m protobufMessage) joined(current protobufMessage) (fields []protobufField) {
	for i, f := range current.Fields {
		for _, other := range current.Fields[:i] {
			was, otherWas := m.field(f.Number), m.field(other.Number)
			if f.OneOf != "" && f.OneOf == other.OneOf && was != nil && otherWas != nil && (was.OneOf == "" || was.OneOf != otherWas.OneOf) {
				fields = append(fields, f)
				break
			}
		}
	}
	return fields
}

// enumDifferences returns the numbers of an enumeration that are no longer there, or have the name
// that another number had. A new name alone changes nothing in stored messages.
func enumDifferences(field string, old, current []protobufEnumValue) (diffs []diff) {
	for _, was := range old {
		now := slices.IndexFunc(current, func(v protobufEnumValue) bool { return v.Number == was.Number })
		moved := func(v protobufEnumValue) bool { return v.Name == current[now].Name }
		switch {
		case slices.Contains(current, was): // perhaps beside another name of the number
		case now < 0:
			diffs = append(diffs, diff{retyped, field, was.String(), "without that number"})
		case slices.ContainsFunc(old, moved):
			diffs = append(diffs, diff{retyped, field, was.String(), current[now].String()})
		}
	}
	return diffs
}

func (v protobufEnumValue) String() string { return fmt.Sprintf("%s = %d", v.Name, v.Number) }

func (m *protobufMessages) enum(name string) []protobufEnumValue {
	for _, one := range m.Enums {
		if one.Name == name {
			return one.Values
		}
	}
	return nil
}

func protobufText(m *protobufMessages) string {
	if m == nil {
		return "JSON"
	}
	return "message " + m.Message
}

// elementOf returns the type of the elements of a list or map.
func elementOf(text string) string {
	text = strings.TrimPrefix(text, "repeated ")
	if _, value, isMap := strings.Cut(text, ", "); isMap {
		return strings.TrimSuffix(value, ">")
	}
	return text
}

func (m *protobufMessages) message(name string) protobufMessage {
	for _, one := range m.Messages {
		if one.Name == name {
			return one
		}
	}
	return protobufMessage{}
}

func (m *protobufMessages) has(name string) bool { return m.message(name).Name != "" }

func (m protobufMessage) field(number int32) *protobufField {
	for i := range m.Fields {
		if m.Fields[i].Number == number {
			return &m.Fields[i]
		}
	}
	return nil
}
