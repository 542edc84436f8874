package wire

import (
	"reflect"
	"sync"
)

// shape is what a struct of the SDK has on the wire.
type shape struct {
	fields []field
	index  map[string]int // of a field, by its name on the wire
}

type field struct {
	index int
	name  string // as the start of a member: "Name":
}

// unsent are the fields that never travel.
var unsent = map[string]bool{"ResultMetadata": true, "ErrorCodeOverride": true}

var shapes sync.Map // reflect.Type -> *shape

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s := &shape{index: map[string]int{}}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || unsent[f.Name] {
			continue
		}
		name := f.Name
		if name == "Message" && reflect.PointerTo(t).Implements(reflect.TypeFor[error]()) {
			name = "message"
		}
		s.index[name] = i
		s.fields = append(s.fields, field{index: i, name: `"` + name + `":`})
	}
	shapes.Store(t, s)
	return s
}
