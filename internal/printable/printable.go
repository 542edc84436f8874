// Package printable prepares stored text for an error, a log or a terminal. There, a control
// character, an escape sequence or a mark that changes the direction of text could forge or hide
// what is shown.
package printable

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s as it is if all its characters are printable, otherwise as a quoted Go string.
func Text(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, hidden) {
		return strconv.Quote(s)
	}
	return s
}

// Quote returns s as a quoted Go string. It cuts a long text.
func Quote(s string) string {
	const most = 80
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%q... (%d bytes)", s[:most], len(s))
}

// Lines returns a text of several lines, in which all other characters that are not printable are
// escaped as in a Go string, except tabs.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if !utf8.ValidString(line) || strings.ContainsFunc(line, hiddenInLine) {
			lines[i] = escape(line)
		}
	}
	return strings.Join(lines, "\n")
}

func escape(s string) string {
	var escaped strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if char := s[:size]; hiddenInLine(r) || r == utf8.RuneError && size == 1 {
			quoted := strconv.Quote(char)
			escaped.WriteString(quoted[1 : len(quoted)-1])
		} else {
			escaped.WriteString(char)
		}
		s = s[size:]
	}
	return escaped.String()
}

func hidden(r rune) bool { return !unicode.IsPrint(r) }

func hiddenInLine(r rune) bool { return r != '\t' && hidden(r) }
