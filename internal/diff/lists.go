package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Kind compares and shows lists of one kind of value, such as events.
type Kind struct {
	Noun string // the word for one value, such as "event"
	// Name returns the name of a value. An expected value that is missing is compared with an
	// actual value of the same name. Default: the type, without the star of a pointer.
	Name func(v any) string
	// Note returns an addition to the message about a missing value, "" for none. Default: none.
	Note func(v any) string
}

// mostDifferences limits how many differences of two values are listed.
const mostDifferences = 10

// List returns the values as text, one in each line.
func (k Kind) List(values []any) string {
	if len(values) == 0 {
		return "no " + k.Noun + "s"
	}
	var text strings.Builder
	text.WriteString(Count(len(values), k.Noun))
	for i, v := range values {
		fmt.Fprintf(&text, "\n  %d. %s", i+1, Show(v))
	}
	return text.String()
}

// Compare returns a line for each value that is missing, unexpected, different from the expected
// one of its name, or in another place. It returns "" if the lists are equal.
func (k Kind) Compare(want, got []any) string {
	if slices.EqualFunc(want, got, equal) {
		return ""
	}
	pairs := k.match(want, got)
	came := make([]bool, len(got)) // whether the value belongs to an expected value
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, "- "+fmt.Sprintf(format, args...)) }
	for i, v := range want {
		p, ok := pairs[i]
		if !ok {
			add("missing: %s %d, %s%s", k.Noun, i+1, Show(v), k.note(v))
			continue
		}
		came[p.got] = true
		if p.moved {
			add("in another place: %s %d was expected as %s %d: %s", k.Noun, p.got+1, k.Noun, i+1, Show(got[p.got]))
		}
		if len(p.differences) > 0 {
			add("%s %d, %s, differs:%s", k.Noun, p.got+1, k.name(got[p.got]), list(p.differences))
		}
	}
	for j, v := range got {
		if !came[j] {
			add("unexpected: %s %d, %s", k.Noun, j+1, Show(v))
		}
	}
	return strings.Join(lines, "\n")
}

// Fields returns a line for each difference of two values, and "" if they are equal.
func Fields(want, got any) string {
	found := differences(want, got, mostDifferences+1)
	if len(found) == 0 {
		return ""
	}
	return strings.TrimPrefix(list(found), "\n")
}

// Changes lists the differences between a value and its decoded copy, and returns "" if they are
// equal.
func Changes(before, after any) string {
	var all []string
	for i, d := range differences(before, after, mostDifferences+1) {
		if i == mostDifferences {
			all = append(all, "and more")
			break
		}
		all = append(all, fmt.Sprintf("%s was %s and came back as %s", d.Path, d.Want, d.Got))
	}
	return strings.Join(all, ", ")
}

func list(found []Difference) string {
	var text strings.Builder
	for i, d := range found {
		if i == mostDifferences {
			text.WriteString("\n    and more")
			break
		}
		fmt.Fprintf(&text, "\n    %v", d)
	}
	return text.String()
}

func equal(want, got any) bool {
	_, differs := First(want, got)
	return !differs
}

func (k Kind) name(v any) string {
	if k.Name != nil {
		return k.Name(v)
	}
	t := reflect.TypeOf(v)
	if t == nil {
		return "nil"
	}
	return strings.TrimPrefix(t.String(), "*")
}

func (k Kind) note(v any) string {
	if k.Note == nil {
		return ""
	}
	if note := k.Note(v); note != "" {
		return " (" + note + ")"
	}
	return ""
}
