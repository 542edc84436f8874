package catalogue

import "strings"

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
			if old.has(fromType) && current.has(toType) && strings.TrimSuffix(f.Type, fromType) == strings.TrimSuffix(now.Type, toType) {
				compare(where, fromType, toType)
			} else if f.Type != now.Type {
				diffs = append(diffs, diff{kind: retyped, field: where, old: f.Type, new: now.Type})
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
