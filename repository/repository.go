package repository

import (
	"context"
	"reflect"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// Repository loads and saves the aggregates of one definition. Make one with [New]. It keeps
// nothing in memory between calls, except with a [Config.Cache]. It is safe for concurrent use.
type Repository[S any] struct {
	journal    *engine.Engine
	append     func(context.Context, storage.Commit) (storage.Receipt, error) // of the journal
	definition aggregate.Definition[S]
	config     Config
	codec      SnapshotCodec
	newEventID func() string
	// flat reports that an assignment copies a value of S completely.
	flat     bool
	cache    cache[S]
	recent   *recent
	turns    turns
	counters counters
}

// New returns a repository. It makes no requests. Event ids come from the NewID of the journal's
// config.
//
// Errors: [*ConfigError], [*aggregate.DefinitionError].
func New[S any](j *journal.Journal, definition aggregate.Definition[S], config Config) (*Repository[S], error) {
	if j == nil {
		return nil, &ConfigError{Field: "the journal", Reason: "is nil: open one with journal.Open"}
	}
	if err := definition.Validate(); err != nil {
		return nil, err
	}
	if err := config.validate(); err != nil {
		return nil, err
	}
	config.setDefaults()
	codec := config.SnapshotCodec
	if codec == nil {
		codec = stateOnly{definition.Codec()}
	}
	r := &Repository[S]{
		journal:    j.Internal(),
		append:     j.Internal().Append,
		definition: definition,
		config:     config,
		codec:      codec,
		newEventID: j.Config().NewID,
		flat:       isFlat(reflect.TypeFor[S]()),
		recent:     newRecent(),
	}
	var err error
	r.cache, err = newCache(r, config.Cache)
	return r, err
}
