package aggregate

import "reflect"

// Codec encodes events and states as bytes and decodes them. [JSON] is the default;
// [Definition.WithCodec] sets another.
//
// A codec must be safe for concurrent use. Marshal is passed an event in the form in which it was
// defined, value or pointer, and a state as a pointer. The caller owns the bytes that it returns.
// Unmarshal is passed a pointer to a zero value. It must not keep data, and must return an error if
// bytes remain after the value.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// TypeChecker is an optional interface of a [Codec] that can find out from a Go type alone whether
// its values survive encoding and decoding. [Definition.Validate] calls CheckType for the state and
// for each event, in the form in which Marshal is passed them. The error says what would be lost
// and what to do about it.
type TypeChecker interface {
	CheckType(t reflect.Type) error
}
