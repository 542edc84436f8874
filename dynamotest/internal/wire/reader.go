package wire

import (
	"unicode/utf16"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// maxDepth limits the nesting of a body, so that reading it cannot exhaust the stack. Documents of
// 32 levels, DynamoDB's limit, need two levels of JSON for each.
const maxDepth = 512

// reader reads a JSON text token by token. The first failure is stored in err and moves the reader
// to the end of the text. So callers check err once, at the end.
type reader struct {
	data  []byte
	at    int
	depth int
	first bool // whether the next member of an object or list is the first
	err   error

	unescaped []byte // buffer for strings with escapes
	refused   error  // a fault that DynamoDB reports only after it has read everything
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = apierror.Serialization(format, args...)
	}
	r.at = len(r.data)
}

// malformed reports invalid JSON. DynamoDB's message has no details either.
func (r *reader) malformed() { r.fail("Unexpected token received from parser") }

// refuse records a fault of a well-formed body.
func (r *reader) refuse(format string, args ...any) {
	if r.refused == nil {
		r.refused = apierror.Validation(format, args...)
	}
}

// peek returns the first byte of the next token, 0 at the end.
func (r *reader) peek() byte {
	for ; r.at < len(r.data); r.at++ {
		switch c := r.data[r.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// end checks that nothing follows.
func (r *reader) end() {
	if r.peek(); r.at < len(r.data) {
		r.malformed()
	}
}

// open enters an object or a list. The caller has seen its bracket with peek.
func (r *reader) open() {
	r.at++
	r.first = true
	if r.depth++; r.depth > maxDepth && r.err == nil {
		r.err = apierror.Validation("Nesting Levels have exceeded supported limits: " +
			"Attributes in the item have nested levels beyond supported limit")
		r.at = len(r.data)
	}
}

// more reports whether another member of the object or list follows. If not, it leaves it.
func (r *reader) more(closing byte) bool {
	first := r.first
	r.first = false
	switch c := r.peek(); {
	case c == closing:
		r.at++
		r.depth--
		return false
	case first && c != 0:
		return true
	case c == ',':
		r.at++
		if r.peek() != closing {
			return true
		}
	}
	r.malformed()
	return false
}

// key returns the name of the next member of an object. It is valid until the next string is read.
func (r *reader) key() []byte {
	if r.peek() != '"' {
		r.malformed()
		return nil
	}
	name := r.text()
	if r.peek() != ':' {
		r.malformed()
		return nil
	}
	r.at++
	return name
}

// null reads a null if there is one.
func (r *reader) null() bool { return r.peek() == 'n' && r.word("null") }

func (r *reader) word(word string) bool {
	if len(r.data)-r.at < len(word) || string(r.data[r.at:r.at+len(word)]) != word {
		r.malformed()
		return false
	}
	r.at += len(word)
	return true
}

// text reads a string. The caller has seen its quote with peek. The bytes belong to the body, and
// are valid until the next string is read.
func (r *reader) text() []byte {
	r.at++
	start, ascii := r.at, true
	for i := start; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			r.at = i + 1
			return r.checked(r.data[start:i], ascii)
		case c == '\\':
			return r.escaped(start, i)
		case c < ' ':
			r.malformed()
			return nil
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	r.malformed()
	return nil
}

// escaped continues at the first escape of a string that began at start.
func (r *reader) escaped(start, escape int) []byte {
	out := r.unescaped[:0]
	out = append(out, r.data[start:escape]...)
	for i := escape; i < len(r.data); {
		switch c := r.data[i]; {
		case c == '"':
			r.at, r.unescaped = i+1, out
			return r.checked(out, false)
		case c < ' ':
			r.malformed()
			return nil
		case c != '\\':
			out = append(out, c)
			i++
		case i+1 < len(r.data) && r.data[i+1] == 'u':
			char, length := r.unicode(i)
			out = utf8.AppendRune(out, char)
			i += length
		case i+1 < len(r.data) && escapes[r.data[i+1]] != 0:
			out = append(out, escapes[r.data[i+1]])
			i += 2
		default:
			r.malformed()
			return nil
		}
	}
	r.malformed()
	return nil
}

var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unicode reads the escape \uXXXX at i, or two that are a surrogate pair. It replaces half a pair.
func (r *reader) unicode(i int) (char rune, length int) {
	char, ok := r.hex(i)
	if !ok {
		r.malformed()
		return 0, len(r.data)
	}
	if !utf16.IsSurrogate(char) {
		return char, 6
	}
	if second, ok := r.hex(i + 6); ok {
		if pair := utf16.DecodeRune(char, second); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

func (r *reader) hex(i int) (char rune, ok bool) {
	if len(r.data)-i < 6 || r.data[i] != '\\' || r.data[i+1] != 'u' {
		return 0, false
	}
	for _, c := range r.data[i+2 : i+6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		char = char<<4 | rune(c)
	}
	return char, true
}

func (r *reader) checked(text []byte, ascii bool) []byte {
	if !ascii && !utf8.Valid(text) {
		r.malformed()
		return nil
	}
	return text
}

// number reads a number and returns its text, which belongs to the body.
func (r *reader) number() []byte {
	start := r.at
	if r.is('-') {
		r.at++
	}
	switch {
	case r.is('0'):
		r.at++
	default:
		r.digits()
	}
	if r.is('.') {
		r.at++
		r.digits()
	}
	if r.is('e') || r.is('E') {
		r.at++
		if r.is('+') || r.is('-') {
			r.at++
		}
		r.digits()
	}
	if r.err != nil {
		return nil
	}
	return r.data[start:r.at]
}

func (r *reader) is(c byte) bool { return r.at < len(r.data) && r.data[r.at] == c }

// digits reads one or more digits.
func (r *reader) digits() {
	start := r.at
	for r.at < len(r.data) && '0' <= r.data[r.at] && r.data[r.at] <= '9' {
		r.at++
	}
	if r.at == start {
		r.malformed()
	}
}

// skip skips any value.
func (r *reader) skip() {
	switch c := r.peek(); c {
	case '{':
		for r.open(); r.more('}'); {
			r.key()
			r.skip()
		}
	case '[':
		for r.open(); r.more(']'); {
			r.skip()
		}
	case '"':
		r.text()
	case 't':
		r.word("true")
	case 'f':
		r.word("false")
	case 'n':
		r.word("null")
	default:
		r.number()
	}
}
