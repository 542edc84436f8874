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

// Result is the result of a run.
type Result struct {
	Values []any
	Err    error // if it is not nil, the values are ignored
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

// Check checks that the three runs were those of a pure function. Function is the word for it, and
// advice says what a pure one does.
func (s States[S]) Check(function, advice string, results [3]Result) error {
	if text := diff.Values(s.before, s.Runs[0]); text != "" {
		return fmt.Errorf("the %s changed the state it was given: copy maps, slices and what pointers lead to before changing them (-before +after)\n%s", function, text)
	}
	if text := results[0].compare(results[1]); text != "" {
		return fmt.Errorf("the %s is not pure, it returns two results on the same state: %s (-first +second)\n%s", function, advice, text)
	}
	if text := results[0].compare(results[2]); text != "" {
		return fmt.Errorf("on the same state from a snapshot the %s returns another result: treat nil and empty slices and maps alike (-without +with the snapshot)\n%s", function, text)
	}
	return nil
}

func (r Result) compare(other Result) string {
	if a, b := fmt.Sprint(r.Err), fmt.Sprint(other.Err); a != b {
		return fmt.Sprintf("- the error %q\n+ the error %q", a, b)
	}
	if r.Err != nil {
		return ""
	}
	return diff.Lists(r.Values, other.Values)
}
