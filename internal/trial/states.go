package trial

import (
	"fmt"

	"github.com/millrace-dev/millrace/internal/diff"
)

// States holds a copy of the state for each of three runs of a function. The first two runs check
// that the function is pure. The third runs on the state as restored from a snapshot.
type States[S any] struct {
	Runs   [3]S
	before S // shows whether the function has changed its state
}

// States returns copies of the state after all events.
func (h *History[S]) States() (states States[S], err error) {
	for _, state := range []*S{&states.before, &states.Runs[0], &states.Runs[1]} {
		if *state, err = h.State(); err != nil {
			return states, err
		}
	}
	states.Runs[2], err = h.Reload(states.before)
	return states, err
}

// Changed describes where the first run has changed its state. It returns "" if it has not.
func (s States[S]) Changed() string {
	if d, differs := diff.First(s.before, s.Runs[0]); differs {
		return fmt.Sprintf("at %s from %s to %s: copy maps, slices and what pointers lead to before changing them", d.Path, d.Want, d.Got)
	}
	return ""
}

// Errors describes how the errors of two runs differ. It returns "" if they are the same.
func Errors(first, second error) string {
	if a, b := fmt.Sprint(first), fmt.Sprint(second); a != b {
		return fmt.Sprintf("it returns the error %q, then %q", a, b)
	}
	return ""
}

// Lists describes how the results of two runs differ. It returns "" if they are the same. Noun
// names one value.
func Lists(noun string, first, second []any) string {
	if a, b := len(first), len(second); a != b {
		return fmt.Sprintf("it returns %s, then %d", diff.Count(a, noun), b)
	}
	for i, v := range first {
		if d, differs := diff.First(v, second[i]); differs {
			return fmt.Sprintf("it returns %s, then %s (%s %d differs at %s)", diff.Show(v), diff.Show(second[i]), noun, i+1, d.Path)
		}
	}
	return ""
}
