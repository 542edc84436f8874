package diff

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// Lists returns the differences of two lists, "" if they are equal. It pairs equal and similar
// values in their order. Each value has one line, with a minus sign if it is only in the first
// list, and with a plus sign if it is only in the second one. The differences of two similar values
// are shown as [Values] does.
func Lists[T any](first, second []T) string {
	var all lines
	for len(first) > 0 && len(second) > 0 && similarity(first[0], second[0]) == equal {
		all.addEqual(first[0])
		first, second = first[1:], second[1:]
	}
	if len(first)+len(second) == 0 {
		return ""
	}
	similar, best := align(first, second)
	for i, j := 0, 0; i < len(first) || j < len(second); {
		switch {
		case i < len(first) && j < len(second) && similar[i][j] > 0 && best[i][j] == best[i+1][j+1]+similar[i][j]:
			if similar[i][j] == equal {
				all.addEqual(first[i])
			} else {
				all.add(Values(first[i], second[j]))
			}
			i, j = i+1, j+1
		case i < len(first) && best[i][j] == best[i+1][j]:
			all.add("- " + Show(first[i]))
			i++
		default:
			all.add("+ " + Show(second[j]))
			j++
		}
	}
	all.flush()
	return strings.Join(all.text, "\n")
}

// align returns the similarity of each value with each value of the other list. It also returns the
// highest sum of similarities of pairs in order, for the values from each two indexes on.
func align[T any](first, second []T) (similar, best [][]int) {
	similar, best = make([][]int, len(first)), make([][]int, len(first)+1)
	best[len(first)] = make([]int, len(second)+1)
	for i := len(first) - 1; i >= 0; i-- {
		similar[i], best[i] = make([]int, len(second)), make([]int, len(second)+1)
		for j := len(second) - 1; j >= 0; j-- {
			similar[i][j] = similarity(first[i], second[j])
			best[i][j] = max(best[i+1][j], best[i][j+1], best[i+1][j+1]+similar[i][j])
		}
	}
	return similar, best
}

const equal = 10

// similarity returns how many tenths of their contents two values share, up to equal. It returns 0
// for values that are not worth a comparison, since one line for each says more.
func similarity(first, second any) (tenths int) {
	defer func() {
		if recover() != nil {
			tenths = 1 // so that Values says why they cannot be compared
		}
	}()
	var found report
	switch {
	case cmp.Equal(first, second, options, cmp.Reporter(&found)):
		return equal
	case found.same > 0:
		return 1 + (equal-2)*found.same/(found.same+found.different)
	case Show(first) == Show(second):
		return 1 // so that Values says what Show does not
	}
	return 0
}

// lines are the lines of a comparison. It abbreviates what is equal.
type lines struct {
	text  []string
	equal []string // since the latest difference
}

func (l *lines) addEqual(v any) {
	text := []rune(Show(v))
	if len(text) > 120 {
		text = append(text[:120], []rune("...")...)
	}
	l.equal = append(l.equal, "  "+string(text))
}

func (l *lines) add(text string) {
	l.flush()
	l.text = append(l.text, text)
}

func (l *lines) flush() {
	if n := len(l.equal); n > 4 {
		l.equal = []string{l.equal[0], fmt.Sprintf("  ... // %d equal values", n-2), l.equal[n-1]}
	}
	l.text, l.equal = append(l.text, l.equal...), nil
}
