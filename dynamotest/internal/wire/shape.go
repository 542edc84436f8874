package wire

import (
	"reflect"
	"strings"
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

// nameOf is the name of a field on the wire: its own, but for some of errors.
func nameOf(t reflect.Type, field string) string {
	switch t.Name() {
	case "ThrottlingReason", "ThrottlingException":
		return strings.ToLower(field[:1]) + field[1:]
	case "IdempotentParameterMismatchException", "InvalidEndpointException", "TransactionCanceledException",
		"TransactionInProgressException": // those that came later
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
