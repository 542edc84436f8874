package repository

import (
	"errors"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
)

// UnknownEvents is what a load does with a stored event whose type the definition lacks.
type UnknownEvents int

const (
	// FailOnUnknown ends the load with an [*EventError] that holds an
	// [*aggregate.UnknownEventError].
	FailOnUnknown UnknownEvents = iota
	// SkipUnknown leaves the event without effect: the version counts it, the state does not show
	// it, and the logger is told once for each load that reads such events. The aggregate is then
	// [Aggregate.Partial], and its state never becomes a snapshot.
	//
	// An event without any type, an event that cannot be decoded and an upcaster that fails still
	// end the load.
	SkipUnknown
)

// Partial reports that the state lacks the effect of events which the program does not know. It
// happens with [SkipUnknown] alone.
func (a Aggregate[S]) Partial() bool { return a.partial }

// unknown returns the type of an event that a load passes over, if its error is of that kind. What
// an upcaster gives is this program's own, so it is never passed over.
func (r *Repository[S]) unknown(err error) (eventType string, ok bool) {
	if err == nil || r.config.UnknownEvents != SkipUnknown || errors.As(err, new(*aggregate.UpcastError)) {
		return "", false
	}
	var unknown *aggregate.UnknownEventError
	if !errors.As(err, &unknown) || unknown.EventType == "" {
		return "", false
	}
	return unknown.EventType, true
}

// skipped is what a load has passed over, to be reported once.
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
		"skipped": s.count, "first": s.first, "first_type": s.firstType,
	}))
}
