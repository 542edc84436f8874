package repository

import (
	"errors"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/printable"
)

// UnknownEvents says what a load does with a stored event whose type the definition lacks.
type UnknownEvents int

const (
	// FailOnUnknown ends the load with an [*EventError] that holds an
	// [*aggregate.UnknownEventError].
	FailOnUnknown UnknownEvents = iota
	// SkipUnknown ignores the event: the version counts it, the state does not show it, and each
	// load that reads such events logs it once. The aggregate is then [Aggregate.Partial], and its
	// state never becomes a snapshot.
	//
	// An event without any type, an event that cannot be decoded and an upcaster that fails still
	// end the load.
	SkipUnknown
)

// Partial reports that the state lacks the effect of events that the program does not know. This
// happens only with [SkipUnknown].
func (a Aggregate[S]) Partial() bool { return a.partial }

// unknownType returns the type of an event that a load skips, if its error is of that kind. Events
// that an upcaster returns are from this program, so they are never skipped.
func (r *Repository[S]) unknownType(err error) (eventType string, ok bool) {
	if err == nil || r.config.UnknownEvents != SkipUnknown || errors.As(err, new(*aggregate.UpcastError)) {
		return "", false
	}
	var unknown *aggregate.UnknownEventError
	if !errors.As(err, &unknown) || unknown.EventType == "" {
		return "", false
	}
	return unknown.EventType, true
}

// skipped holds the events that a load has skipped, to report them once.
type skipped struct {
	count     int
	first     uint64
	firstType string
}

func (s *skipped) add(number uint64, eventType string) {
	if s.count == 0 {
		s.first, s.firstType = number, eventType
	}
	s.count++
}

func (s *skipped) report(logger watermill.LoggerAdapter, id aggregate.ID, version uint64) {
	if s.count == 0 {
		return
	}
	logger.Info("Events of unknown types skipped, the state lacks their effect", fields(id, version).Add(watermill.LogFields{
		"skipped": s.count, "first": s.first, "first_type": printable.Text(s.firstType),
	}))
}
