package catalogue

import (
	"fmt"
	"slices"
	"strings"
)

// upcaster checks an event type that an upcaster reads now, or has read before. It compares the
// form of the stored events with what reads them.
func (c *check) upcaster(old, now *entry) {
	c.result(old, now)
	c.returned(old, now)
	read, form := c.reader(now), c.storedForm(old)
	if read == nil || form == nil || read.GoType == "" {
		return
	}
	complete := form.Kind == event
	switch {
	case read.Codec != form.Codec && now.Kind == event:
		c.event(form, now)
	case read.Codec != form.Codec:
		fix := "pass the former codec to Upcaster.WithCodec"
		if now.Renames {
			fix = "use aggregate.Upcast, and pass the former codec to Upcaster.WithCodec, in place of aggregate.Rename"
		}
		c.breaks(old, "", "its upcaster decodes by the codec "+read.Codec,
			"stored events can only be decoded by the codec that wrote them: "+form.Codec, fix)
	case read.Kind == event:
		version := newVersion(form, read)
		if now.Renames {
			version = fmt.Sprintf("use aggregate.Upcast(%q, func(old %s) %s { ... }) in place of aggregate.Rename",
				old.Event, oldTypeName(form), bareTypeName(read.GoType))
		}
		diffs := differences(form.schema, c.standalone(read))
		if !complete {
			diffs = slices.DeleteFunc(diffs, func(d diff) bool { return d.kind == added || d.kind == nowRequired })
		}
		c.payload(old, diffs, "stored events", version)
	default:
		c.reads(old, form, read)
	}
}

// reader returns what the stored events of an entry are decoded as: an event or an upcaster. It is
// nil for a circle of renames.
func (c *check) reader(now *entry) *entry {
	for range len(c.now) + 1 {
		if now == nil || !now.Renames {
			return now
		}
		now = c.now[subject{event, now.Aggregate, now.UpcastTo[0], 0}]
	}
	return nil
}

// result notes another result of an upcaster.
func (c *check) result(old, now *entry) {
	const why, fix = "snapshots and read models were stored with the former result",
		"increase repository.Config.SnapshotSchema and rebuild the read models"
	switch {
	case now.Kind != upcaster:
	case old.Kind == event && len(now.UpcastTo) == 0 && !now.Open:
		c.note(old, "stored events of this type are ignored now", "snapshots and read models were stored with their effect", fix)
	case old.Kind == upcaster && !slices.Equal(old.UpcastTo, now.UpcastTo):
		c.note(old, fmt.Sprintf("its upcaster returned %s and returns %s", list(old.UpcastTo), list(now.UpcastTo)), why, fix)
	}
}

// returned reports fields that an upcaster returns and that are read in another way. It returns a
// type of its own then: not that of the definition, or of the next upcaster.
func (c *check) returned(old, now *entry) {
	if now.returns == nil {
		return
	}
	read := c.reader(c.now[subject{event, now.Aggregate, now.UpcastTo[0], 0}])
	if read == nil || read.GoType == "" {
		return
	}
	alone := &Catalogue{inference: newInference(c.config.As)}
	as := &entry{}
	if err := alone.describe(as, read.codec, now.returns); err != nil {
		return // Definition.Validate reports types that cannot be encoded
	}
	alone.names = definitionNames(alone.reachable(as))
	breaks := func(d diff, what string) {
		c.breaks(old, d.field, "its upcaster returns "+what, "the events that it returns are read as "+read.GoType, "let it return "+read.GoType)
	}
	for _, d := range readDifferences(alone.withRequired(as), c.standalone(read)) {
		switch field := d.where(); {
		case d.kind == retyped:
			breaks(d, field+" as "+d.old+", which is read as "+d.new)
		case d.kind == nowNotNull:
			breaks(d, field+" with null, which cannot be read")
		case d.kind == removed && read.Kind == event:
			breaks(d, field+", which is not read")
		case d.kind == added:
			breaks(d, "events without "+field)
		}
	}
}

// reads reports fields that an upcaster reads and that stored events do not have, and notes fields
// that it no longer reads, which may be on purpose.
func (c *check) reads(old, form, read *entry) {
	ignored := c.ignored(old, read)
	inPlace := false
	for _, d := range readDifferences(form.schema, c.standalone(read)) {
		switch field := d.where(); d.kind {
		case added, addedOptional:
			inPlace = inPlace || form.Kind != event && len(ignored) > 0
			c.readsAdded(old, form, read, ignored, d)
		case retyped:
			c.breaks(old, d.field, "its upcaster reads "+field+" as "+d.new, "stored events have "+d.old,
				"read it with the type that stored events have")
		case nowNotNull:
			c.breaks(old, d.field, "its upcaster reads "+field+" as a type without null", "stored events may have null, which is refused or read as the zero value",
				"read it as a pointer")
		}
	}
	for _, d := range ignored {
		if !inPlace {
			c.note(old, "its upcaster no longer reads "+d.where(), "the events that it returns lack the value of this field",
				"read the field again if it was removed by mistake; otherwise increase repository.Config.SnapshotSchema and rebuild the read models")
		}
	}
}

// readsAdded reports a field that an upcaster reads and that the form of stored events lacks.
// Ignored are the fields that the upcaster no longer reads.
func (c *check) readsAdded(old, form, read *entry, ignored []diff, d diff) {
	where, field := old.file, d.where()
	if old.Kind == upcaster {
		where = "x-stored in " + where
	}
	before := old.Kind == upcaster && !slices.ContainsFunc(readDifferences(old.schema, c.standalone(read)), func(of diff) bool {
		return of.field == d.field && (of.kind == added || of.kind == addedOptional)
	})
	switch {
	case form.Kind == event && c.shares(form, read, d):
		if !before {
			c.note(old, "its upcaster now reads "+field, "stored events lack this field, so it has its zero value",
				"read them as a type of their own if this value is not right")
		}
	case form.Kind == event:
		c.breaks(old, d.field, "its upcaster reads "+field, "stored events lack this field, so it has its zero value",
			"read the fields that stored events have; "+where+" lists them")
	case len(ignored) > 0:
		c.breaks(old, d.field, "its upcaster reads "+field+" in place of "+ignored[0].where(),
			"stored events may lack this field, so it has its zero value", "read the former field")
	case !before:
		c.note(old, "its upcaster now reads "+field, "the catalogue does not know whether stored events have this field",
			"compare it with stored events")
	}
}

// shares reports whether an upcaster reads an optional field that may be there for current events:
// the field is in a nested type, which they may share, or the upcaster reads their type.
func (c *check) shares(form, read *entry, d diff) bool {
	optional := slices.ContainsFunc(readDifferences(form.schema, c.withRequired(read)), func(of diff) bool {
		return of.kind == addedOptional && of.field == d.field
	})
	if !optional {
		return false
	}
	if read.schema.Protobuf != nil || strings.ContainsAny(d.field, ".[{") {
		return true
	}
	return slices.ContainsFunc(c.all(), func(e *entry) bool {
		return e.Kind == event && e.root != nil && read.root != nil && e.root.t == read.root.t
	})
}

// ignored returns the fields that an upcaster has read before and does not read any more.
func (c *check) ignored(old, read *entry) []diff {
	if old.Kind != upcaster || old.GoType == "" || old.Codec != read.Codec {
		return nil
	}
	diffs := readDifferences(old.schema, c.standalone(read))
	return slices.DeleteFunc(diffs, func(d diff) bool { return d.kind != removed })
}
