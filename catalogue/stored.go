package catalogue

import (
	"fmt"
	"slices"
)

// The file of an event type that an upcaster reads describes what the upcaster reads, and with the
// keyword x-stored what is stored. Both are needed: an upcaster may ignore fields, and a later one
// must still be compared with them.

// storedForm returns what the committed files describe of the stored events of a type. Its kind is
// event if the type was described while programs wrote it. Otherwise it is upcaster, and the form
// has only the fields that upcasters have read. It is nil if nothing is known.
func (c *check) storedForm(of *entry) *entry {
	old := of
	for range len(c.had) + 1 { // renames can form a circle
		switch {
		case old == nil:
			return nil
		case old.Kind == event || old.schema.Stored != nil:
			form := old
			if old.schema.Stored != nil {
				form = &entry{about: *old.schema.Stored.About, schema: old.schema.Stored, file: old.file}
			}
			if old != of {
				return partial(of, form)
			}
			return form
		case old.Renames:
			old = c.had[subject{event, old.Aggregate, old.UpcastTo[0], 0}]
		case old.GoType == "":
			return nil
		default:
			return partial(of, old)
		}
	}
	return nil
}

// partial returns the schema of another entry as what is known of the stored events of a type.
func partial(of, from *entry) *entry {
	what := about{Kind: upcaster, Aggregate: of.Aggregate, Event: of.Event, Codec: from.Codec, GoType: from.GoType}
	return &entry{about: what, schema: from.schema, file: of.file}
}

// keepStored adds the schemas of stored events to the files of event types that upcasters read.
func (c *check) keepStored(files, before map[string][]byte) error {
	for _, e := range c.all() {
		old := c.had[e.subject()]
		if e.Kind != upcaster || old == nil {
			continue
		}
		form := c.storedForm(old)
		if form == nil || old.Kind == upcaster && old.schema.Stored == nil && string(before[e.file]) == string(files[e.file]) {
			continue // the file itself is all that is known
		}
		s, what := c.standalone(e), form.about
		stored := *form.schema
		if form.Kind == upcaster && e.GoType != "" && e.Codec == form.Codec {
			stored = *form.schema.with(s)
		}
		stored.Dialect, stored.Title, stored.Description, stored.About, stored.Stored = "", "", "", &what, nil
		s.Stored = &stored
		data, err := document(s)
		if err != nil {
			return fmt.Errorf("catalogue: encode the schema of %s: %w", e.about, err)
		}
		files[e.file] = data
	}
	return nil
}

// with returns a copy of a document that has also the fields of another one.
func (s *schema) with(other *schema) *schema {
	if len(s.Type) == 0 {
		return other.copied(func(*schema) {})
	}
	both := *s
	both.Properties = s.Properties.with(other.Properties)
	both.Defs = nil
	for _, of := range s.Defs {
		if more := other.Defs.get(of.name); more != nil {
			of.schema = of.schema.with(more)
		}
		both.Defs = append(both.Defs, of)
	}
	both.Defs = both.Defs.with(other.Defs)
	return &both
}

func (p properties) with(other properties) properties {
	both := slices.Clone(p)
	for _, of := range other {
		if p.get(of.name) == nil {
			both = append(both, of)
		}
	}
	return both
}
