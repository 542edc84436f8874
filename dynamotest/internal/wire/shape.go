package wire

import (
	"reflect"
	"strings"
	"sync"
)

// shape describes the JSON form of an SDK struct.
type shape struct {
	fields []field
	index  map[string]int // index of a field, by its JSON name
}

type field struct {
	index int
	name  string // as the start of a member: "Name":
}

// unsent are fields that JSON does not contain.
var unsent = map[string]bool{"ResultMetadata": true, "ErrorCodeOverride": true}

// nameOf returns the JSON name of a field: its own name, except for some fields of errors.
func nameOf(t reflect.Type, field string) string {
	switch t.Name() {
	case "ThrottlingReason", "ThrottlingException":
		return strings.ToLower(field[:1]) + field[1:]
	case "IdempotentParameterMismatchException", "InvalidEndpointException", "TransactionCanceledException",
		"TransactionInProgressException": // errors that were added later
		return field
	}
	if field == "Message" && reflect.PointerTo(t).Implements(reflect.TypeFor[error]()) {
		return "message"
	}
	return field
}

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
		name := nameOf(t, f.Name)
		s.index[name] = i
		s.fields = append(s.fields, field{index: i, name: `"` + name + `":`})
	}
	shapes.Store(t, s)
	return s
}
