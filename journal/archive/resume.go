package archive

import (
	"errors"
	"fmt"
	"io"

	"github.com/millrace-dev/millrace/aggregate"
)

// Position is where an export can go on. The zero value is the beginning.
type Position struct {
	// Offset is how many bytes of the archive are complete. What is behind them has to be cut off.
	Offset int64
	// After is the last aggregate that is complete. What was left out behind it is looked at again.
	After aggregate.ID
	// Aggregates and Events are what is complete, and LeftOut the aggregates that were left out
	// before that.
	Aggregates, Events, LeftOut int64
	// Only is what the archive was restricted to when it was begun.
	Only Selection
	// Complete: the archive has its total line, and Export has nothing left to do.
	Complete bool
}

// Resume reads an archive whose export was cut off, at whatever byte, and returns where to go on:
// cut what was read to [Position.Offset], and give the position to [Export], with a writer that
// appends. An empty file is the beginning.
//
// Where nothing can be cut off, as in an object store, copy that many bytes into a new object and
// let the export append.
//
// All that is kept has been verified. Damage within an archive, rather than at its end, makes
// Resume go back to the aggregate before it.
//
// Errors: [ErrNotArchive], with which nothing should be cut off; those of r.
func Resume(r io.Reader) (Position, error) {
	in := newReader(r)
	for {
		_, err := in.next()
		var fault *LineError
		switch {
		case err == nil:
		case errors.Is(err, ErrNotArchive):
			return Position{}, fmt.Errorf("resume export: %w", err)
		case errors.Is(err, io.EOF), errors.As(err, &fault):
			return in.done, nil
		default:
			return Position{}, fmt.Errorf("resume export: %w", err)
		}
	}
}
