package repository

import (
	"fmt"
	"reflect"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Aggregate is the state of an aggregate after some event. It belongs to the caller: the repository
// keeps no part of it.
//
// An Aggregate that a repository returned carries a proof of the events that its State and Version
// stand for. The proof becomes invalid if ID or Version is changed. A value that was made by hand
// or decoded from JSON has no proof. [Repository.Save] reads an aggregate without a proof before it
// writes. Save never stores a State that the caller changed. Change state only by events.
//
// The proof is in unexported fields. Two values with equal ID, State and Version can therefore
// differ: compare these fields, not whole values.
type Aggregate[S any] struct {
	ID    aggregate.ID
	State S
	// Version is the sequence number of the last event, or 0 if there is none.
	Version uint64
	// Repeated reports that the last run of the decision wrote nothing, because its command
	// ([WithCommandID]) was executed before: by an earlier call, or by an earlier run of this call
	// whose outcome was unknown. The aggregate knows the id, or, for a [Transaction], the journal.
	// State and Version are the current ones, not those after the command. Both are zero if the
	// aggregate was deleted since, or its key was destroyed.
	Repeated bool

	partial bool       // see Partial
	origin  *origin[S] // nil for none; never changed, because copies share it
}

// Token returns the consistency token of the aggregate at its version. It is empty for an aggregate
// without events.
func (a Aggregate[S]) Token() aggregate.Token {
	if a.Version == 0 {
		return nil
	}
	return aggregate.Token{{ID: a.ID, Version: a.Version}}
}

// NewAggregate returns an aggregate without events, to save under an id that is not in use. It
// makes no request. The error is an [*aggregate.InvalidIDError].
func (r *Repository[S]) NewAggregate(id string) (Aggregate[S], error) {
	name, err := r.definition.ID(id)
	return Aggregate[S]{ID: name}, err
}

// Copy returns an aggregate whose State shares no memory with the State of a. Use it before code
// that may change maps, slices and pointers in the State.
//
// Errors: [*UnencodableStateError].
func (r *Repository[S]) Copy(a Aggregate[S]) (Aggregate[S], error) { return r.copyOf(a) }

// copyOf returns an aggregate whose state shares no memory with the state of a. It encodes and
// decodes the state, since reflection cannot set unexported fields. The snapshot codec must be able
// to decode its own bytes anyway.
func (r *Repository[S]) copyOf(a Aggregate[S]) (Aggregate[S], error) {
	if a.Version == 0 {
		// The zero state shares no memory.
		return Aggregate[S]{ID: a.ID}, nil
	}
	if r.flat {
		a.Repeated = false // it is about another call
		return a, nil
	}
	payload, err := r.codec.EncodeSnapshot(a.ID, a.Version, &a.State)
	copied := Aggregate[S]{}
	if err == nil {
		copied, err = r.decode(a, payload)
	}
	if err != nil {
		return Aggregate[S]{}, &UnencodableStateError{ID: a.ID, Version: a.Version, Err: err}
	}
	return copied, nil
}

// ownCopy returns a copy as copyOf does. If it encodes the state, it keeps the encoded form in the
// origin of a.
func (r *Repository[S]) ownCopy(a *Aggregate[S]) (own Aggregate[S], err error) {
	if a.Version == 0 || r.flat {
		return r.copyOf(*a)
	}
	if own, ok := r.decoded(*a); ok {
		return own, nil
	}
	payload, err := r.codec.EncodeSnapshot(a.ID, a.Version, &a.State)
	if err == nil {
		a.setEncoded(payload)
		own, err = r.decode(*a, payload)
	}
	if err != nil {
		return own, &UnencodableStateError{ID: a.ID, Version: a.Version, Err: err}
	}
	return own, nil
}

// decoded returns an aggregate with the state decoded from its origin. It returns false if the
// origin holds no encoded state.
func (r *Repository[S]) decoded(a Aggregate[S]) (Aggregate[S], bool) {
	payload, ok := a.encoded()
	if !ok {
		return Aggregate[S]{}, false
	}
	own, err := r.decode(a, payload)
	return own, err == nil
}

// decode returns an aggregate with another state, which it decodes.
func (r *Repository[S]) decode(a Aggregate[S], payload []byte) (Aggregate[S], error) {
	own := Aggregate[S]{ID: a.ID, Version: a.Version, partial: a.partial, origin: a.origin}
	_, err := r.codec.DecodeSnapshot(payload, &own.State)
	return own, err
}

// check returns an error for an aggregate of another type.
func (r *Repository[S]) check(a Aggregate[S]) error {
	if err := a.ID.Validate(); err != nil {
		return err
	}
	if want := r.definition.Type(); a.ID.Type != want {
		return &aggregate.InvalidIDError{ID: a.ID, Reason: fmt.Sprintf("this repository is for aggregates of type %q: use the repository that loaded it", want)}
	}
	return nil
}

// isFlat reports whether an assignment copies a value of the type completely.
func isFlat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return false
	case reflect.Array:
		return isFlat(t.Elem())
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			// Its pointer refers to a time zone, which never changes.
			return true
		}
		for i := range t.NumField() {
			if !isFlat(t.Field(i).Type) {
				return false
			}
		}
	}
	return true
}
