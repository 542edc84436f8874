package aggregate

import "reflect"

// Codec turns events and states into bytes and back. [JSON] is the default; [Definition.WithCodec]
// sets another.
//
// A codec must be safe for concurrent use. Marshal gets an event in the form in which it was
// defined, value or pointer, and a state as a pointer; it returns bytes that the caller owns.
// Unmarshal gets a pointer to a zero value and must neither keep data nor accept data with
// something left over at its end.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// TypeChecker is for codecs that can tell from a Go type alone whether its values survive. If a
// codec implements it, [Definition.Validate] asks it about the state and about each event, in the
// form in which Marshal will get them. The error says what would be lost and what to do about it.
type TypeChecker interface {
	CheckType(t reflect.Type) error
}
