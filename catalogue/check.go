package catalogue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// subject identifies what an entry describes. An upcaster describes the event that it reads.
type subject struct {
	kind        kind
	owner, name string
	version     int
}

func (a about) subject() subject {
	switch a.Kind {
	case state:
		return subject{state, a.Aggregate, "", 0}
	case message:
		return subject{message, a.Channel, a.Message, a.Version}
	}
	return subject{event, a.Aggregate, a.Event, 0}
}

// check finds the changes since the committed entries.
type check struct {
	*Catalogue
	now        map[subject]*entry
	had        map[subject]*entry
	difference *Difference
	missing    map[string]bool // aggregate types that were reported as missing
}

func (c *check) breaks(old *entry, field, what, why, fix string) {
	c.difference.Incompatible = append(c.difference.Incompatible, Change{old.about.String(), field, what, why, fix, old.file})
}

func (c *check) note(old *entry, what, why, fix string) {
	c.difference.Notes = append(c.difference.Notes, Change{old.about.String(), "", what, why, fix, old.file})
}

// entry compares a committed entry with the current one.
func (c *check) entry(old *entry) {
	now := c.now[old.subject()]
	switch {
	case now == nil && old.Kind == message:
		c.messageGone(old)
	case now == nil:
		c.eventGone(old)
	case old.Kind == message:
		c.message(old, now)
	case old.Kind == state:
		c.state(old, now)
	case old.Kind == event && now.Kind == event:
		c.event(old, now)
	default:
		c.upcaster(old, now)
	}
}

func (c *check) eventGone(old *entry) {
	if !slices.ContainsFunc(c.aggregates, func(a *aggregateEntry) bool { return a.name == old.Aggregate }) {
		if c.missing[old.Aggregate] {
			return
		}
		if c.missing == nil {
			c.missing = map[string]bool{}
		}
		c.missing[old.Aggregate] = true
		c.difference.Incompatible = append(c.difference.Incompatible, Change{
			Subject: fmt.Sprintf("aggregate type %q", old.Aggregate), File: "aggregates/" + folderOf(old.file),
			What: "its definition was removed", Why: "stored events of its aggregates can no longer be read",
			Fix: "add the definition to Config.Definitions, or accept the change if all its aggregates were deleted",
		})
		return
	}
	name := old.Event
	if old.Kind == upcaster {
		c.breaks(old, "", "its upcaster was removed", "stored events of this type can no longer be read",
			"restore the upcaster, and keep it for as long as such events are stored")
		return
	}
	fix := fmt.Sprintf("add an upcaster to Definition.WithUpcasters: aggregate.Upcast(%q, func(old %s) NewEvent { ... }), "+
		"or aggregate.Drop(%[1]q) if it has no meaning any more", name, oldTypeName(old))
	if to := c.renamedTo(old); to != "" {
		fix = fmt.Sprintf("add aggregate.Rename(%q, %q) to Definition.WithUpcasters if that is its new name, "+
			"or another upcaster for %[1]q", name, to)
	}
	c.breaks(old, "", "the event type was removed, and no upcaster reads it",
		"loads of aggregates with such events fail, and consumers do not handle them", fix)
}

// folderOf returns the folder of an aggregate for one of its files.
func folderOf(file string) string {
	folder, _, _ := strings.Cut(strings.TrimPrefix(file, "aggregates/"), "/")
	return folder
}

// renamedTo returns the new event type that has the fields of a removed one; empty if it is not one
// alone.
func (c *check) renamedTo(old *entry) (name string) {
	for s, e := range c.now {
		if s.kind != event || s.owner != old.Aggregate || e.Kind != event || c.had[s] != nil || e.Codec != old.Codec {
			continue
		}
		if len(differences(old.schema, c.standalone(e))) == 0 {
			if name != "" {
				return ""
			}
			name = e.Event
		}
	}
	return name
}

func (c *check) event(old, now *entry) {
	version := newVersion(old, now)
	if old.Codec != now.Codec {
		c.breaks(old, "", fmt.Sprintf("the codec was %s and is %s", old.Codec, now.Codec),
			"stored events can only be decoded by the codec that wrote them",
			"restore the codec, or "+version+", with Upcaster.WithCodec and the former codec")
		return
	}
	c.payload(old, differences(old.schema, c.standalone(now)), "stored events", version)
}

// newVersion says how to make a new version of an event type.
func newVersion(old, now *entry) string {
	return fmt.Sprintf("give the changed type the name %q and add aggregate.Upcast(%q, func(old %s) %s { ... }) to Definition.WithUpcasters",
		nextVersion(old.Event), old.Event, oldTypeName(old), bareTypeName(now.GoType))
}

// payload reports differences that stored payloads do not allow. Version says how to make a new
// version.
func (c *check) payload(old *entry, diffs []diff, payloads, version string) {
	for _, d := range diffs {
		switch field := d.where(); d.kind {
		case removed:
			c.breaks(old, d.field, field+" was removed", payloads+" have it, and consumers that read it find nothing",
				"restore the field, accept the change if no program reads it, or "+version)
		case renamed:
			c.breaks(old, d.field, fmt.Sprintf("%s was removed, and %q of the same type was added", field, d.new),
				fmt.Sprintf("%s have %q, which is ignored, and lack %q", payloads, d.old, d.new),
				fmt.Sprintf("restore the name by a tag (json:%q) if %q is a new name of the same value; "+
					"restore the field, and make %[2]q optional (json:%q), if it is another value; or %s", d.old, d.new, d.new+",omitzero", version))
		case recased:
			c.breaks(old, d.field, fmt.Sprintf("%s is now written as %q", field, d.new),
				payloads+" have the former name: encoding/json reads both, but programs in other languages do not",
				fmt.Sprintf("restore the name by a tag (json:%q), or %s", d.old, version))
		case added:
			c.breaks(old, d.field, "the required "+strings.TrimPrefix(field, "the ")+" was added", payloads+" lack it, and are read with its zero value",
				fmt.Sprintf("make it optional by a tag if the zero value is right for them (json:%q), or %s", lastName(d.field)+",omitzero", version))
		case nowRequired:
			c.breaks(old, d.field, field+" is now required", payloads+" may lack it",
				"restore omitempty or omitzero in its tag, or "+version)
		case retyped:
			why := payloads + " have the former type, which cannot be decoded or has another meaning"
			if d.new == anyJSON {
				why = payloads + " can be decoded, but consumers cannot rely on the former type any more"
			}
			c.breaks(old, d.field, fmt.Sprintf("%s was %s and is %s", field, d.old, d.new), why, "restore the type, or "+version)
		case nowNotNull:
			c.breaks(old, d.field, field+" does not allow null any more", payloads+" may have null, which is refused or read as the zero value",
				"restore the pointer, or "+version)
		}
	}
}

// where names the field of a difference.
func (d diff) where() string {
	if d.field == "" {
		return "the payload"
	}
	return "the field " + strconv.Quote(d.field)
}

// lastName returns the name of the last field of a path.
func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// state reports a changed state. It breaks nothing, since loads can replay the events.
func (c *check) state(old, now *entry) {
	diffs := differences(old.schema, c.standalone(now))
	if old.Codec == now.Codec && len(diffs) == 0 {
		return
	}
	what := fmt.Sprintf("the codec was %s and is %s", old.Codec, now.Codec)
	if old.Codec == now.Codec {
		var fields []string
		for _, d := range diffs {
			if where := d.where(); !slices.Contains(fields, where) {
				fields = append(fields, where)
			}
		}
		what = strings.Join(fields, ", ") + " changed"
	}
	c.note(old, what, "snapshots hold the former state",
		"increase repository.Config.SnapshotSchema, so that loads ignore these snapshots and replay the events; "+
			"aggregates whose old events were truncated cannot be loaded then")
}
