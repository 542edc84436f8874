package console

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// change is a value that differs between two states. Path is its place, such as items[2].price.
type change struct {
	Path   string          `json:"path"`
	Before json.RawMessage `json:"before,omitempty"` // missing: it was added
	After  json.RawMessage `json:"after,omitempty"`  // missing: it was removed
}

// mostChanges is the maximum number of listed changes of one event.
const mostChanges = 50

// changes returns the differences of two JSON documents, up to mostChanges, and the number of
// further differences. In lists it leaves out equal elements at the beginning and at the end, and
// compares the others by their index.
func changes(before, after []byte) (list []change, more int) {
	d := differ{}
	d.compare("", decoded(before), decoded(after))
	return d.list, d.more
}

func decoded(data []byte) any {
	if data == nil {
		return absent{}
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // keeps large numbers exact
	var value any
	if decoder.Decode(&value) != nil {
		return absent{}
	}
	return value
}

// absent stands for a missing value.
type absent struct{}

type differ struct {
	list []change
	more int
}

func (d *differ) compare(path string, before, after any) {
	if reflect.DeepEqual(before, after) {
		return
	}
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok {
			d.compareObjects(path, b, a)
			return
		}
	case []any:
		if a, ok := after.([]any); ok {
			d.compareLists(path, b, a)
			return
		}
	}
	if len(d.list) == mostChanges {
		d.more++
		return
	}
	d.list = append(d.list, change{path, encoded(before), encoded(after)})
}

func (d *differ) compareObjects(path string, before, after map[string]any) {
	keys := map[string]bool{}
	for key := range before {
		keys[key] = true
	}
	for key := range after {
		keys[key] = true
	}
	value := func(m map[string]any, key string) any {
		if v, ok := m[key]; ok {
			return v
		}
		return absent{}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		inner := key
		if path != "" {
			inner = path + "." + key
		}
		d.compare(inner, value(before, key), value(after, key))
	}
}

func (d *differ) compareLists(path string, before, after []any) {
	start := 0
	for start < len(before) && start < len(after) && reflect.DeepEqual(before[start], after[start]) {
		start++
	}
	end := 0
	for end < len(before)-start && end < len(after)-start && reflect.DeepEqual(before[len(before)-1-end], after[len(after)-1-end]) {
		end++
	}
	before, after = before[:len(before)-end], after[:len(after)-end]
	for i := start; i < max(len(before), len(after)); i++ {
		var b, a any = absent{}, absent{}
		if i < len(before) {
			b = before[i]
		}
		if i < len(after) {
			a = after[i]
		}
		d.compare(path+"["+strconv.Itoa(i)+"]", b, a)
	}
}

func encoded(value any) json.RawMessage {
	if value == (absent{}) {
		return nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil // not possible: the value was decoded from JSON
	}
	return data
}
