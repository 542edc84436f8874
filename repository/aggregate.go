package repository

import (
	"fmt"
	"reflect"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Aggregate is an aggregate as it is after some event. It is yours: no repository keeps any part of it. But
// [Repository.Save] takes State for what Version events have made of it, so leave changes to events.
type Aggregate[S any] struct {
	ID    aggregate.ID
	State S
	// Version is the sequence number of the last event, 0 if there is none.
	Version uint64
	// Repeated says that Execute wrote nothing, since the aggregate knows the [CommandID] already. State and Version are
	// what they are now, not as they were after the command; both are zero if the aggregate was deleted since.
	Repeated bool

	partial bool // see Partial
	origin  *origin
}

// origin is what an aggregate carries from its load to its next commit, nil where that is nothing. It is never changed,
// for copies of the aggregate share it.
type origin struct {
	redundant []uint64 // the redundant snapshots that the head lists
	listed    bool     // redundant is known
	rebuild   bool     // the snapshot in the store is of an earlier form and to be replaced
}

func (a Aggregate[S]) from() origin {
	if a.origin == nil {
		return origin{}
	}
	return *a.origin
}

func (a *Aggregate[S]) setFrom(o origin) {
	a.origin = nil
	if o.listed || o.rebuild {
		a.origin = &o
	}
}

// NewAggregate gives an aggregate without events, to be saved under an id that is not taken yet. It makes no
// request. The error is an [*aggregate.InvalidIDError].
func (r *Repository[S]) NewAggregate(id string) (Aggregate[S], error) {
	name, err := r.definition.ID(id)
	return Aggregate[S]{ID: name}, err
}

// Copy gives an aggregate whose state shares no memory with that of a, for code that may change what maps, slices and pointers in it lead to.
//
// Errors: [*UnencodableStateError].
func (r *Repository[S]) Copy(a Aggregate[S]) (Aggregate[S], error) { return r.copyOf(a) }

// copyOf gives an aggregate whose state shares no memory with that of a. Only a codec can copy any state, as
// reflection cannot set unexported fields, and the snapshot codec has to give back what it got anyway.
func (r *Repository[S]) copyOf(a Aggregate[S]) (Aggregate[S], error) {
	if a.Version == 0 {
		return Aggregate[S]{ID: a.ID}, nil // a zero value leads nowhere
	}
	if r.flat {
		a.Repeated = false // what becomes of the copy is another call's doing
		return a, nil
	}
	copied := Aggregate[S]{ID: a.ID, Version: a.Version, partial: a.partial, origin: a.origin}
	payload, err := r.codec.EncodeSnapshot(infoOf(a), &a.State)
	if err == nil {
		_, err = r.codec.DecodeSnapshot(payload, &copied.State)
	}
	if err != nil {
		return Aggregate[S]{}, &UnencodableStateError{ID: a.ID, Version: a.Version, Err: err}
	}
	return copied, nil
}

// check refuses an aggregate that this repository can not have given.
func (r *Repository[S]) check(a Aggregate[S]) error {
	if err := a.ID.Validate(); err != nil {
		return err
	}
	if want := r.definition.Type(); a.ID.Type != want {
		return &aggregate.InvalidIDError{ID: a.ID, Reason: fmt.Sprintf("this repository is for aggregates of type %q: use the one it was loaded with", want)}
	}
	return nil
}

// isFlat tells whether values of a type are copied whole by assignment.
func isFlat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return false
	case reflect.Array:
		return isFlat(t.Elem())
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return true // its pointer leads to a time zone, which never changes
		}
		for i := range t.NumField() {
			if !isFlat(t.Field(i).Type) {
				return false
			}
		}
	}
	return true
}
