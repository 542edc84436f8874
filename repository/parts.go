package repository

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Parts are the aggregates of one decision, of the same or of different types, in one journal:
//
//	from, to := accounts.Part("alice"), accounts.Part("bob")
//	err := repository.Parts{from, to}.Execute(ctx, func() error {
//		if from.State.Balance < 30 {
//			return ErrInsufficientFunds
//		}
//		from.Append(Withdrawn{30})
//		to.Append(Deposited{30})
//		return nil
//	})
type Parts []Participant

// Execute loads the parts side by side, runs a decision on their states, and commits the events
// that it appends, to all aggregates or to none. It relies on all parts: the commit is written only
// if none of the aggregates has changed since it was loaded, including those that get no events.
//
// If somebody else writes to one of them meanwhile, Execute starts again: it loads all of them, and
// runs the decision once more. An [*AttemptsError] ends this after the smallest
// [Config.MaxAttempts] of the repositories, and so does the end of the context. The error of a
// decision, and one that appends nothing, count only if a transaction shows that all versions are
// still the same. The parts are read by separate requests, so their states may never have existed
// together. One part that was just read needs no second look.
//
// After a success each part has its aggregate, see [Part.Aggregate]. The events carry the metadata
// of the context. They have one commit id in all aggregates.
//
// Of the options, [CommandID] makes the call take effect once in the whole journal, whatever the
// parts are. [Writes] is called for each aggregate that gets events. [ExpectVersion] is an option
// of [Repository.Part].
//
// It costs one transaction: two write units for each KB of each item, also in the layout
// journal.Packed, where a commit to one aggregate needs no transaction. A part without events costs
// two write units, and in the layout journal.Classic two for each KB of its head, with the state. A
// transaction has room for 100 actions and 4 MB: each aggregate takes one action, a command id one,
// and in the layout journal.Classic each event one.
//
// Errors: those of [Repository.Execute]. An error that concerns no single part has the id of the
// first one. An aggregate that is among the parts twice, or parts of different journals, are a
// [journal.ErrInvalidCommit], and nothing was read. More than the limits are a
// [*journal.TooLargeError].
func (parts Parts) Execute(ctx context.Context, decide func() error, given ...Option) error {
	participants := make(participants, len(parts))
	for i, p := range parts {
		if p != nil {
			participants[i] = p.participant()
		}
		if participants[i] == nil {
			return fmt.Errorf("execute: %w: part %d is none: make it with Repository.Part", journal.ErrInvalidCommit, i)
		}
	}
	for _, p := range participants {
		p.fail() // until it is known better
	}
	options, err := participants.check(given)
	if err != nil {
		return err
	}
	if decide == nil {
		return fmt.Errorf("execute on %s: %w", participants, ErrNilDecision)
	}
	e := &joint{parts: participants, log: participants[0].log(), decide: decide, options: options}
	_, err = untilKnown(ctx, e, options.commandID, e.log.Config().RetryBudget)
	if err != nil {
		for _, p := range participants {
			p.fail()
		}
	}
	return err
}

// participants are the parts of a call.
type participants []participant

func (parts participants) String() string { return fmt.Sprint(parts.ids()) }

func (parts participants) ids() []aggregate.ID {
	ids := make([]aggregate.ID, len(parts))
	for i, p := range parts {
		ids[i] = p.id()
	}
	return ids
}

// check finds what makes parts or options impossible.
func (parts participants) check(given []Option) (options, error) {
	if len(parts) == 0 {
		return options{}, fmt.Errorf("execute: %w: there are no parts", journal.ErrInvalidCommit)
	}
	seen := map[aggregate.ID]bool{}
	for _, p := range parts {
		switch id := p.id(); {
		case p.check() != nil:
			return options{}, fmt.Errorf("execute: %w", p.check())
		case seen[id]:
			return options{}, fmt.Errorf("execute: %w: %s is among the parts twice: use one part for it", journal.ErrInvalidCommit, id)
		case p.log().Journal != parts[0].log().Journal:
			return options{}, fmt.Errorf("execute: %w: %s and %s are of different journals: make their repositories with the same one",
				journal.ErrInvalidCommit, parts[0].id(), id)
		default:
			seen[id] = true
		}
	}
	o, err := optionsOf(given)
	if err == nil && o.expected != nil {
		err = fmt.Errorf("%w: the option ExpectVersion is for one aggregate: give it to its part", journal.ErrInvalidCommit)
	}
	if err != nil {
		return o, fmt.Errorf("execute on %s, nothing written: %w", parts, err)
	}
	return o, nil
}

// each calls a function for all parts side by side. If one panics, as the caller's codec may, each
// does.
func (parts participants) each(do func(p participant) error) error {
	var calls errgroup.Group
	calls.SetLimit(partsAtOnce)
	panics := make(chan any, len(parts))
	for _, p := range parts {
		calls.Go(func() error {
			defer func() {
				if r := recover(); r != nil {
					panics <- r
				}
			}()
			return do(p)
		})
	}
	err := calls.Wait()
	select {
	case r := <-panics:
		panic(r)
	default:
		return err
	}
}

// partsAtOnce bounds the requests that read parts side by side.
const partsAtOnce = 16
