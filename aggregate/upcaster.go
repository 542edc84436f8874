package aggregate

import (
	"fmt"
	"reflect"
)

// Upcaster turns stored events of one type, which the definition has no longer, into the events
// that stand for them today. Make one with [Upcast], [Split], [Rename], [Drop] or [UpcastRaw] and
// give it to [Definition.WithUpcasters].
//
// Its function must be pure: the same payload yields the same events each time, with no clock,
// random number or look-up of anything, because every load runs it anew. It must be safe for
// concurrent use. A panic in it is passed on.
type Upcaster struct {
	from    string
	to      []string     // the names it is known to give
	open    bool         // it may give names that are not in to
	old     reflect.Type // what the payload is decoded as, nil if it is not decoded
	new     reflect.Type // what is encoded, nil if nothing is
	codec   Codec        // reads the payload; nil for the definition's
	convert func(read, write Codec, payload []byte) ([]EncodedEvent, error)
	fault   string
}

// Upcast makes one event of today of each stored event of the type from:
//
//	aggregate.Upcast("account.deposited.v1", func(old depositedV1) Deposited {
//		return Deposited{Amount: old.Cents, Currency: "EUR"}
//	})
//
// Old is a Go type with the fields that the function needs. It has no methods to implement and need
// not be known to the definition. New is an event type of the definition, or one that another
// upcaster reads, and returns its name from EventType. Either may be a pointer.
func Upcast[Old any, New interface{ EventType() string }](from string, convert func(old Old) New) Upcaster {
	if convert == nil {
		return Split[Old, []New](from, nil)
	}
	return Split(from, func(old Old) ([]New, error) { return []New{convert(old)}, nil })
}

// Split makes zero, one or several events of today of each stored event of the type from. They are
// applied in their order. An error fails the load, as an [*UpcastError]. The function returns a
// slice of one event type or [Events], which holds events of several types:
//
//	aggregate.Split("account.transferred.v1", func(old transferredV1) (Events, error) {
//		return Events{Withdrawn{old.Amount}, Charged{old.Fee}}, nil
//	})
func Split[Old any, List ~[]New, New interface{ EventType() string }](from string, convert func(old Old) (List, error)) Upcaster {
	u := Upcaster{from: from, old: reflect.TypeFor[Old]()}
	if convert == nil {
		return u.withFault("its function is nil: give one, or use Drop for events without effect")
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
			return u.withFault(fmt.Sprintf("it gives a %s, whose %v", t, err))
		}
		u.new, u.to = t, []string{name}
	}
	u.convert = func(read, write Codec, payload []byte) ([]EncodedEvent, error) {
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
				return nil, fmt.Errorf("event %d that it gives is nil: leave it out, or use Drop", i+1)
			}
			payload, err := write.Marshal(event)
			if err != nil {
				return nil, fmt.Errorf("encode event %d that it gives, %s: %w", i+1, quote(event.EventType()), err)
			}
			encoded[i] = EncodedEvent{Type: event.EventType(), Payload: payload}
		}
		return encoded, nil
	}
	return u
}

// Rename gives stored events another name and leaves their payload as it is.
func Rename(from, to string) Upcaster {
	return UpcastRaw(from, func(payload []byte) ([]EncodedEvent, error) {
		return []EncodedEvent{{Type: to, Payload: payload}}, nil
	}, to)
}

// Drop makes nothing of stored events: they keep their place in the history and have no effect any
// more. Their payload is not looked at.
func Drop(from string) Upcaster {
	return Upcaster{from: from, convert: func(_, _ Codec, _ []byte) ([]EncodedEvent, error) { return nil, nil }}
}

// UpcastRaw works on the stored bytes, for what no Go type describes well. The function must not
// change payload; what it returns may share memory with it. An error fails the load, as an
// [*UpcastError].
//
// To are the names of the events that it gives, so that [Definition.Validate] can check them.
// Without them a name that the definition lacks shows only when such an event is read.
func UpcastRaw(from string, convert func(payload []byte) ([]EncodedEvent, error), to ...string) Upcaster {
	u := Upcaster{from: from, to: to, open: len(to) == 0}
	if convert == nil {
		return u.withFault("its function is nil: give one, or use Drop for events without effect")
	}
	u.convert = func(_, _ Codec, payload []byte) ([]EncodedEvent, error) { return convert(payload) }
	return u
}

// WithCodec returns an upcaster that reads stored payloads with a codec of its own: the one that
// the definition had when they were written. Without it, it is the definition's. Only [Upcast] and
// [Split] decode.
func (u Upcaster) WithCodec(codec Codec) Upcaster {
	if codec == nil {
		return u.withFault("its codec is nil: give one, or leave WithCodec out for the definition's")
	}
	u.codec = codec
	return u
}

func (u Upcaster) withFault(fault string) Upcaster {
	u.fault = fault
	return u
}

// errMalformedOld marks the codec's error on an old payload, which is no fault of the upcaster's
// function.
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
