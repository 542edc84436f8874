package console_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/console"
)

func TestJSONIsShownAsItReads(t *testing.T) {
	t.Parallel()
	for stored, shown := range map[string]string{
		`"\u003cb\u003e \u0026 \u003C"`: `"<b> & <"`,
		`"\\u003c"`:                     `"\\u003c"`,
		`"\\\u003c\n"`:                  `"\\<\n"`,
		`"\\"`:                          `"\\"`,
		`{"a":1}`:                       "{\n  \"a\": 1\n}",
		`not JSON \`:                    `not JSON \`,
	} {
		assert.Equal(t, shown, console.Pretty([]byte(stored)))
	}
}
