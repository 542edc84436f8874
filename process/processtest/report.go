package processtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/diff"
	"github.com/millrace-dev/millrace/process"
)

// where names the current place in the scenario, for failures.
func (s *Scenario[S]) where() string {
	if s.inputs == 0 {
		return "Given"
	}
	return s.input
}

// unhandled says why the latest input led to no step.
func (s *Scenario[S]) unhandled() string {
	text := fmt.Sprintf("%s: %v", s.where(), s.err)
	switch {
	case errors.As(s.err, new(*process.UnknownTimeoutError)):
		// The definition is wrong. A test should not expect this.
		return text
	case errors.Is(s.err, process.ErrIgnored):
		return text + " (if this is expected, call ThenIgnored)"
	}
	return text + " (if this is expected, call ThenError)"
}

// whyNone says why an event belongs to no process.
func (s *Scenario[S]) whyNone(event string, in process.Input) string {
	types := s.definition.EventTypes()
	if !slices.Contains(types, in.Type) {
		return fmt.Sprintf("there is no reaction to event type %q, only to %s", in.Type, quoted(types))
	}
	text := fmt.Sprintf("its reaction returned no process for %s", event)
	if in.Source.Value == "" {
		text += ", whose source is not known: if the reaction uses that, pass When a process.Input with its Source"
	}
	return text
}

// shown describes an event, and its source if that is known.
func shown(event string, source aggregate.ID) string {
	if source.Value == "" {
		return event
	}
	return fmt.Sprintf("%s of %s %q", event, source.Type, source.Value)
}

// whyNotSet says why a timeout cannot fire.
func (s *Scenario[S]) whyNotSet(name string) string {
	text := "the timeout is not set"
	switch why := s.gone[name]; {
	case why != "":
		text += " any more: " + why
	case s.history.Len() > 0 && s.keyFrom == "":
		text += ": events that are passed to Given set none, so begin with the When whose step sets it, or pass WhenTimeout a process.Input with its OccurredAt"
	default:
		text += ": no step has set it"
	}
	if len(s.set) == 0 {
		return text + "; no timeout is set"
	}
	return text + "; set are " + quoted(slices.Sorted(maps.Keys(s.set)))
}

// stepText describes the whole latest step.
func (s *Scenario[S]) stepText() string {
	var text strings.Builder
	text.WriteString("the step was:")
	for _, part := range parts(s.step) {
		for i, v := range part.values {
			fmt.Fprintf(&text, "\n  %s %d: %s", part.noun, i+1, diff.Show(v))
		}
	}
	return text.String()
}

// part is one of the lists of a step.
type part struct {
	noun   string // of one value
	values []any
}

func parts[S any](step process.Step[S]) []part {
	return []part{
		{"event", diff.Any(step.Events())},
		{"command", diff.Any(step.Commands())},
		{"timeout", diff.Any(step.Timeouts())},
		{"cancelled timeout", diff.Any(step.Cancelled())},
	}
}

func quoted(names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprintf("%q", name))
	}
	return strings.Join(all, ", ")
}
