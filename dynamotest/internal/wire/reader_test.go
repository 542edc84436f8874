package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzReader compares the reader with encoding/json: both accept the same texts and read the same
// values.
func FuzzReader(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-0.5e+10,true,false,null,"b\n\u00e4\ud83d\ude00\ud83d"],"":{}}`, `[]`, `[1,]`, `{"a" : 1 , "a":2}`,
		`"\"`, `01`, `-`, `1e`, `1.`, `tru`, "\"\x01\"", "\"\xff\"", ` 12 `, `1 2`, `[1}`, `{"a":}`, `{a:1}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Count(text, "[")+strings.Count(text, "{") > maxDepth {
			return
		}
		var want any
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		// DynamoDB does not repair UTF-8
		valid := json.Valid([]byte(text)) && utf8.ValidString(text)
		if valid {
			require.NoError(t, decoder.Decode(&want))
		}

		r := &reader{data: []byte(text)}
		got := r.anything()
		r.end()

		require.Equal(t, valid, r.err == nil, "%q: %v", text, r.err)
		if valid {
			require.Equal(t, want, got)
		}
		skipped := &reader{data: []byte(text)}
		skipped.skip()
		skipped.end()
		require.Equal(t, valid, skipped.err == nil, "%q skipped: %v", text, skipped.err)
	})
}

// anything reads what encoding/json reads into an any.
func (r *reader) anything() any {
	switch r.peek() {
	case '{':
		object := map[string]any{}
		for r.open(); r.more('}'); {
			name := string(r.key())
			object[name] = r.anything()
		}
		return object
	case '[':
		list := []any{}
		for r.open(); r.more(']'); {
			list = append(list, r.anything())
		}
		return list
	case '"':
		return string(r.text())
	case 't', 'f':
		return r.bool("")
	case 'n':
		r.null()
		return nil
	default:
		return json.Number(r.number())
	}
}
