package printable_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/internal/printable"
)

func TestOnlyTextThatCanMisleadIsQuoted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"order-7":           "order-7",
		`Käse "7", 🍛`:       `Käse "7", 🍛`,
		"":                  "",
		"\x1b[2J":           `"\x1b[2J"`,
		"a\nb":              `"a\nb"`,
		"\u009b31m":         `"\u009b31m"`,
		"evil\u202egnp":     `"evil\u202egnp"`,
		"a\xffb":            `"a\xffb"`,
		"zero\u200bwidth":   `"zero\u200bwidth"`,
		"line\u2028break":   `"line\u2028break"`,
		"\u007f":            `"\x7f"`,
		"replaced\ufffd":    "replaced\ufffd",
		"private \ue000":    `"private \ue000"`,
		"unassigned \u0378": `"unassigned \u0378"`,
	} {
		assert.Equal(t, want, printable.Text(text))
	}
}

func TestLinesKeepsTheLines(t *testing.T) {
	t.Parallel()
	const text = "millrace: \"order\" is gone\n\n\tSee: it\n"
	assert.Equal(t, text, printable.Lines(text))
	assert.Equal(t, "a \\x1b[2J \"b\"\n\\xff\\r\n\ufffd\n", printable.Lines("a \x1b[2J \"b\"\n\xff\r\n\ufffd\n"))
}

func TestALongTextIsCut(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `"\x1b"`, printable.Quote("\x1b"))
	assert.Equal(t, `"`+strings.Repeat("a", 80)+`"... (100 bytes)`, printable.Quote(strings.Repeat("a", 100)))
}
