package process

import (
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dryrun"
	"github.com/millrace-dev/millrace/internal/history"
)

// dryRun has the methods of a [Definition] that only package processtest calls. Package dryrun
// passes them to it.
type dryRun[S any] struct{ definition Definition[S] }

func init() {
	dryrun.Of = func(definition any) any { return definition.(interface{ dryRun() any }).dryRun() }
}

func (d Definition[S]) dryRun() any { return dryRun[S]{d} }

// Key returns the id of the process to which an input belongs. Ok is false if there is none.
func (r dryRun[S]) Key(in Input) (key string, ok bool, err error) { return r.definition.key(in) }

// React returns the step of a process. See [Definition.react].
func (r dryRun[S]) React(state S, exists bool, in Input) (Step[S], error) {
	return r.definition.react(state, exists, in)
}

// Decoded returns in with an event that is decoded already. The input belongs to no process yet:
// set Process to the result of Key.
func (r dryRun[S]) Decoded(event interface{ EventType() string }, in Input) Input {
	in.Type, in.decoded, in.Timeout, in.TimeoutKey, in.Process = event.EventType(), event, "", "", ""
	return in
}

// Stored returns the inputs for an event as an aggregate stores it: one input, or an input for each
// event that the upcasters of the aggregate return for it.
func (r dryRun[S]) Stored(definition aggregate.AnyDefinition, event aggregate.EncodedEvent, in Input) ([]Input, error) {
	h, err := history.New(aggregate.JSON, []aggregate.AnyDefinition{definition})
	if err != nil {
		return nil, err
	}
	in.Type, in.payload, in.Timeout, in.TimeoutKey, in.Process = event.Type, event.Payload, "", "", ""
	in.Source.Type = definition.Type()
	return upcast(h, in)
}
