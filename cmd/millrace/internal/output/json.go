package output

import (
	"bytes"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
)

// escaping writes JSON. Package json escapes the control characters of ASCII only, but others too
// change the state of a terminal.
type escaping struct{ out io.Writer }

func (w escaping) Write(p []byte) (int, error) {
	if !bytes.ContainsFunc(p, mustEscape) {
		return w.out.Write(p)
	}
	var escaped bytes.Buffer
	for _, r := range string(p) {
		switch {
		case !mustEscape(r):
			escaped.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&escaped, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&escaped, `\u%04x`, r)
		}
	}
	_, err := w.out.Write(escaped.Bytes())
	return len(p), err
}

func mustEscape(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
