package compare

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
)

// Difference is an operation to which the two sides replied differently.
type Difference struct {
	World       World
	Step        int // in World.Operations
	Operation   Operation
	Left, Right Reply

	// Where lists the first places at which the replies differ.
	Where []Place
}

// Place is a place at which two trees differ.
type Place struct {
	Path        string
	Left, Right string
}

// differences appends the places at which the trees differ.
func differences(places []Place, path string, left, right tree) []Place {
	switch l := left.(type) {
	case map[string]tree:
		r, ok := right.(map[string]tree)
		if !ok {
			break
		}
		names := map[string]bool{}
		for name := range l {
			names[name] = true
		}
		for name := range r {
			names[name] = true
		}
		sorted := make([]string, 0, len(names))
		for name := range names {
			sorted = append(sorted, name)
		}
		sort.Strings(sorted)
		for _, name := range sorted {
			places = differences(places, path+"."+name, l[name], r[name])
		}
		return places
	case []tree:
		r, ok := right.([]tree)
		if !ok || len(l) != len(r) {
			break
		}
		for i := range l {
			places = differences(places, fmt.Sprintf("%s[%d]", path, i), l[i], r[i])
		}
		return places
	}
	if l, r := textOfTree(left), textOfTree(right); l != r {
		places = append(places, Place{strings.TrimPrefix(path, "."), l, r})
	}
	return places
}

var (
	indexes = regexp.MustCompile(`\[\d+\]`)
	details = regexp.MustCompile(`[:#]?"[^"]*"|[\[{(].*|: [^ ]*[#:,]?[\w.]*\d[\w.]*.*`)
)

// Kind returns a text that is the same for differences that probably have the same cause.
func (d Difference) Kind() string {
	if l, r := d.Left.Code(), d.Right.Code(); l != r {
		return fmt.Sprintf("%s: %s / %s", d.Operation.Name(), brief(d.Left), brief(d.Right))
	}
	kind := d.Operation.Name() + ": "
	if code := d.Left.Code(); code != "" {
		kind += code + " "
	}
	return kind + indexes.ReplaceAllString(d.Where[0].Path, "[]")
}

// brief returns the error of a reply without the names and values of the request.
func brief(r Reply) string {
	if r.Err == nil {
		return "no error"
	}
	return r.Code() + " (" + pattern(r.Message()) + ")"
}

// pattern returns a message without the parts that are specific to one request.
func pattern(message string) string {
	return strings.TrimSpace(details.ReplaceAllString(message, " …"))
}

// String returns the information that is needed to investigate the difference.
func (d Difference) String() string {
	text := fmt.Sprintf("seed %d, step %d of %d:\n", d.World.Seed, d.Step, len(d.World.Operations))
	// A longer world was not minimised; its seed is more useful.
	if d.Step < 12 {
		for _, o := range d.World.Operations[:d.Step] {
			text += fmt.Sprintf("  %s\n", o)
		}
	}
	text += fmt.Sprintf("  %s\n", d.Operation)
	text += fmt.Sprintf("  left:  %s\n  right: %s\n", d.Left, d.Right)
	for i, p := range d.Where {
		if i == 5 {
			text += fmt.Sprintf("  and %d more places\n", len(d.Where)-i)
			break
		}
		text += fmt.Sprintf("  at %s: %s / %s\n", p.Path, p.Left, p.Right)
	}
	return text
}
