package processtest

import (
	"errors"
	"reflect"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"

	"github.com/millrace-dev/millrace/internal/diff"
)

// sendable fails the test if a command cannot be sent, or would be received with other contents.
func (s *Scenario[S]) sendable(commands []any) bool {
	s.t.Helper()
	marshaler, hint := s.marshaler, ""
	if marshaler == nil {
		marshaler, hint = cqrs.JSONMarshaler{}, "; if process.Config has another marshaler, set it with Marshaler"
	}
	for i, command := range commands {
		if _, ok := command.(interface{ ProtoMessage() }); ok && s.marshaler == nil {
			// A manager cannot send it by the default marshaler.
			continue
		}
		received, err := roundTrip(marshaler, command)
		if err != nil {
			s.fail("command %d, %s, cannot be sent by %T and received: %v%s", i+1, diff.Show(command), marshaler, err, hint)
			return false
		}
		if lost := diff.Values(command, received); lost != "" {
			s.fail("command %d does not survive %T: its fields must be exported, and of types that the marshaler keeps%s (-before +after)\n%s", i+1, marshaler, hint, lost)
			return false
		}
	}
	return true
}

// roundTrip returns a command as its handler receives it.
func roundTrip(marshaler cqrs.CommandEventMarshaler, command any) (any, error) {
	msg, err := marshaler.Marshal(command)
	if err != nil {
		return nil, err
	}
	if msg == nil {
		return nil, errors.New("the marshaler returned no message")
	}
	t := reflect.TypeOf(command)
	if t.Kind() == reflect.Pointer {
		received := reflect.New(t.Elem()).Interface()
		return received, marshaler.Unmarshal(msg, received)
	}
	received := reflect.New(t)
	err = marshaler.Unmarshal(msg, received.Interface())
	return received.Elem().Interface(), err
}
