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

func TestACountThatIsTooSmallSaysOrMore(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "1 event was", console.OrMore(1, false, "event was", "events were"))
	assert.Equal(t, "1,200 events were", console.OrMore(1200, false, "event was", "events were"))
	assert.Equal(t, "20 or more events were", console.OrMore(20, true, "event was", "events were"))
	assert.Equal(t, "1 or more events were", console.OrMore(1, true, "event was", "events were"))
}
