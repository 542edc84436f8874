package aggregate

import (
	"fmt"
	"reflect"

	"github.com/millrace-dev/millrace/internal/printable"
)

// Upcaster converts stored events of one type, which the definition no longer has, to current
// events. Make one with [Upcast], [Split], [Rename], [Drop] or [UpcastRaw] and pass it to
// [Definition.WithUpcasters].
//
// Its function must be pure, because every load runs it again: the same payload leads to the same
// events each time. So it must not use a clock, a random number or a look-up. It must be safe for
// concurrent use. A panic in it is not recovered.
type Upcaster struct {
	from    string
	to      []string     // the names that it is known to return
	open    bool         // it may return names that are not in to
	many    bool         // it may return several events
	old     reflect.Type // the type that the payload is decoded as, nil if it is not decoded
	new     reflect.Type // the type that is encoded, nil if none is
	codec   Codec        // reads the payload; nil for the definition's
	convert func(read Codec, write codecs, payload []byte) ([]EncodedEvent, error)
	fault   string
}

// codecs returns the codec that decodes events of a type.
type codecs func(eventType string) Codec

// Upcast returns an upcaster that converts each stored event of the type from to one current event:
//
//	aggregate.Upcast("account.deposited.v1", func(old depositedV1) Deposited {
//		return Deposited{Amount: old.Cents, Currency: "EUR"}
//	})
//
// Old is a Go type with the fields that the function needs. It needs no methods and need not be
// part of the definition. New is an event type of the definition, or of another upcaster, and
// returns its name from EventType. Either may be a pointer.
func Upcast[Old any, New interface{ EventType() string }](from string, convert func(old Old) New) Upcaster {
	if convert == nil {
		return Split[Old, []New](from, nil)
	}
	u := Split(from, func(old Old) ([]New, error) { return []New{convert(old)}, nil })
	u.many = false
	return u
}

// Split returns an upcaster that converts each stored event of the type from to zero, one or
// several current events. They are applied in their order. An error of the function fails the load
// with an [*UpcastError]. The function returns a slice of one event type, or [Events] for events of
// several types:
//
//	aggregate.Split("account.transferred.v1", func(old transferredV1) (Events, error) {
//		return Events{Withdrawn{old.Amount}, Charged{old.Fee}}, nil
//	})
func Split[Old any, List ~[]New, New interface{ EventType() string }](from string, convert func(old Old) (List, error)) Upcaster {
	u := Upcaster{from: from, many: true, old: reflect.TypeFor[Old]()}
	if convert == nil {
		return u.withFault("its function is nil: pass one, or use Drop for events without effect")
	}
	if t := reflect.TypeFor[New](); t.Kind() == reflect.Interface {
		u.open = true
	} else {
		zero := reflect.New(t).Elem()
		if t.Kind() == reflect.Pointer {
			zero = reflect.New(t.Elem())
		}
		name, err := eventName(zero.Interface().(New))
		if err != nil {
			return u.withFault(fmt.Sprintf("it returns a %s, whose %v", t, err))
		}
		u.new, u.to = t, []string{name}
	}
	u.convert = func(read Codec, write codecs, payload []byte) ([]EncodedEvent, error) {
		old, err := decodeOld[Old](read, payload)
		if err != nil {
			return nil, err
		}
		events, err := convert(old)
		if err != nil {
			return nil, err
		}
		encoded := make([]EncodedEvent, len(events))
		for i, event := range events {
			if any(event) == nil || isNilPointer(event) {
				return nil, fmt.Errorf("event %d that it returns is nil: omit it, or use Drop", i+1)
			}
			payload, err := write(event.EventType()).Marshal(event)
			if err != nil {
				return nil, fmt.Errorf("encode event %d that it returns, %s: %w", i+1, printable.Quote(event.EventType()), err)
			}
			encoded[i] = EncodedEvent{Type: event.EventType(), Payload: payload}
		}
		return encoded, nil
	}
	return u
}

// Rename returns an upcaster that changes the name of stored events and keeps their payload.
func Rename(from, to string) Upcaster {
	u := UpcastRaw(from, func(payload []byte) ([]EncodedEvent, error) {
		return []EncodedEvent{{Type: to, Payload: payload}}, nil
	}, to)
	u.many = false
	return u
}

// Drop returns an upcaster that ignores stored events: they keep their place in the history and
// have no effect any more. It does not read their payload.
func Drop(from string) Upcaster {
	return Upcaster{from: from, convert: func(Codec, codecs, []byte) ([]EncodedEvent, error) { return nil, nil }}
}

// UpcastRaw returns an upcaster that works on the stored bytes, for payloads that no Go type
// describes well. The function must not change payload. Its result may share memory with payload.
// An error of the function fails the load with an [*UpcastError].
//
// To lists the names of the events that the function returns, so that [Definition.Validate] can
// check them. Without them, a name that the definition lacks is reported only when such an event is
// read.
func UpcastRaw(from string, convert func(payload []byte) ([]EncodedEvent, error), to ...string) Upcaster {
	u := Upcaster{from: from, to: to, open: len(to) == 0, many: true}
	if convert == nil {
		return u.withFault("its function is nil: pass one, or use Drop for events without effect")
	}
	u.convert = func(_ Codec, _ codecs, payload []byte) ([]EncodedEvent, error) { return convert(payload) }
	return u
}

// WithCodec returns a copy of the upcaster that decodes stored payloads with a codec of its own:
// the codec that the definition had when they were written. Default: the codec of the definition.
// Only [Upcast] and [Split] decode. Events that another upcaster returns for this one are encoded
// with the same codec.
func (u Upcaster) WithCodec(codec Codec) Upcaster {
	if codec == nil {
		return u.withFault("its codec is nil: pass one, or omit WithCodec to use the codec of the definition")
	}
	u.codec = codec
	return u
}

// codecOr returns the codec that reads stored payloads. Codec is that of the definition.
func (u Upcaster) codecOr(codec Codec) Codec {
	if u.codec != nil {
		return u.codec
	}
	return codec
}

func (u Upcaster) withFault(fault string) Upcaster {
	u.fault = fault
	return u
}

// errMalformedOld marks the error of the codec for an old payload, to distinguish it from an error
// of the upcaster's function.
type errMalformedOld struct{ error }

func (e errMalformedOld) Unwrap() error { return e.error }

func decodeOld[Old any](codec Codec, payload []byte) (old Old, err error) {
	target := reflect.ValueOf(&old)
	if t := target.Type().Elem(); t.Kind() == reflect.Pointer {
		target.Elem().Set(reflect.New(t.Elem()))
		target = target.Elem()
	}
	if err := codec.Unmarshal(payload, target.Interface()); err != nil {
		return old, errMalformedOld{err}
	}
	return old, nil
}
