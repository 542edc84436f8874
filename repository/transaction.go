package repository

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// Transaction is one decision over several aggregates, of the same or of different types, in one
// journal. [Repository.AddTo] adds one:
//
//	var tx repository.Transaction
//	from, to := accounts.AddTo(&tx, "alice"), accounts.AddTo(&tx, "bob")
//	err := tx.Execute(ctx, func() error {
//		if from.State.Balance < 30 {
//			return ErrInsufficientFunds
//		}
//		from.Append(Withdrawn{30})
//		to.Append(Deposited{30})
//		return nil
//	})
//
// Use a Transaction for one call at a time. Execute may be called again, and then loads the
// participants again.
type Transaction struct{ all participants }

// Execute loads the participants concurrently, runs a decision on their states, and commits the
// events that it appends, to all aggregates or to none. It checks all participants: the commit is
// written only if none of the aggregates has changed since it was loaded, including those without
// new events.
//
// If another writer commits to one of them meanwhile, Execute starts again: it loads all of them,
// and runs the decision once more. After the smallest [Config.MaxAttempts] of the repositories it
// returns an [*AttemptsError]. The end of the context ends the attempts too. A decision on states
// of a [Config.Cache] counts as an attempt, also if they turn out to be old.
//
// The participants are read by separate requests, so their states may never have existed together.
// Execute returns the error of a decision only after a transaction has shown that no version has
// changed. The same holds for a decision that appends nothing. A single participant that was just
// read is not read again, except before the first refusal of a call with [WithCommandID].
//
// After a success each participant has its aggregate, see [Participant.Aggregate]. The events carry
// the metadata of the context. They have one commit id in all aggregates.
//
// Options: [WithCommandID] makes the call take effect once in the whole journal, whatever the
// participants are. [WithWrites] is called for each aggregate that gets events.
// [WithExpectedVersion] is an option of [Repository.AddTo] instead.
//
// Execute costs one transaction: two write units for each KB of each item, also in the layout
// journal.Packed, where a commit to one aggregate needs no transaction. A participant without
// events costs two write units, and in the layout journal.Classic two for each KB of its head, with
// the state. A transaction can have 100 actions and 4 MB: each aggregate takes one action, a
// command id one, and in the layout journal.Classic each event one.
//
// Errors: those of [Repository.Execute]. An error about no single participant has the id of the
// first one. Execute returns [journal.ErrInvalidCommit], and reads nothing, if there are no
// participants, an aggregate is among them twice, or they are of different journals. It returns a
// [*journal.TooLargeError] for a commit that exceeds a limit, and for more than 100 participants.
func (tx *Transaction) Execute(ctx context.Context, decide func() error, given ...Option) error {
	for _, p := range tx.all {
		// No participant has a result until Execute succeeds.
		p.fail(nil)
	}
	options, err := tx.all.check(given)
	if err != nil {
		return err
	}
	if decide == nil {
		return fmt.Errorf("execute on %s: %w", tx.all, ErrNilDecision)
	}
	if middleware := tx.all.middleware(); middleware != nil {
		return tx.wrapped(ctx, middleware, decide, func(ctx context.Context, decide func() error) error { return tx.execute(ctx, decide, options) })
	}
	return tx.execute(ctx, decide, options)
}

// execute is Execute of valid participants, without the middleware.
func (tx *Transaction) execute(ctx context.Context, decide func() error, options options) error {
	e := &joint{all: tx.all, journal: tx.all[0].journal(), decide: decide, options: options}
	if err := untilKnown(ctx, e, options.commandID, e.journal.Config.RetryBudget); err != nil {
		for _, p := range tx.all {
			p.fail(err)
		}
		return err
	}
	return nil
}

// Results returns the result of each participant, in the order in which they were added. Before the
// first Execute, only their IDs are set.
func (tx *Transaction) Results() []Result {
	results := make([]Result, len(tx.all))
	for i, p := range tx.all {
		results[i] = p.result()
	}
	return results
}

// Token returns the consistency token of all participants, after [Transaction.Execute].
func (tx *Transaction) Token() (token aggregate.Token) {
	for _, p := range tx.all {
		if r := p.result(); r.Version > 0 {
			token = append(token, aggregate.VersionedID{ID: r.ID, Version: r.Version})
		}
	}
	return token
}

// participants are all participants of a call.
type participants []participant

func (all participants) String() string { return fmt.Sprint(all.ids()) }

func (all participants) ids() []aggregate.ID {
	ids := make([]aggregate.ID, len(all))
	for i, p := range all {
		ids[i] = p.id()
	}
	return ids
}

// check returns an error for invalid participants or options.
func (all participants) check(given []Option) (options, error) {
	if len(all) == 0 {
		return options{}, fmt.Errorf("execute: %w: there are no participants: add them with Repository.AddTo", journal.ErrInvalidCommit)
	}
	if len(all) > storage.MaxActions {
		return options{}, &journal.TooLargeError{ID: all[0].id(), What: "the commit to all aggregates", Size: len(all), Limit: storage.MaxActions, Unit: "actions"}
	}
	seen := map[aggregate.ID]bool{}
	for _, p := range all {
		switch id := p.id(); {
		case p.check() != nil:
			return options{}, fmt.Errorf("execute: %w", p.check())
		case seen[id]:
			return options{}, fmt.Errorf("execute: %w", &SameParticipantError{id})
		case p.journal() != all[0].journal():
			return options{}, fmt.Errorf("execute: %w: %s and %s are of different journals: make their repositories with the same journal",
				journal.ErrInvalidCommit, all[0].id(), id)
		default:
			seen[id] = true
		}
	}
	o, err := optionsOf(given)
	if err == nil && o.expected != nil {
		err = fmt.Errorf("%w: the option WithExpectedVersion is for one aggregate: pass it to Repository.AddTo", journal.ErrInvalidCommit)
	}
	if err != nil {
		return o, fmt.Errorf("execute on %s, nothing written: %w", all, err)
	}
	return o, nil
}

// each calls a function for all participants concurrently. If a call panics, for example in the
// caller's codec, each panics with the same value in the goroutine of its caller. If a call ends
// its goroutine, each ends the goroutine of its caller.
func (all participants) each(do func(i int, p participant) error) error {
	var calls errgroup.Group
	calls.SetLimit(participantsAtOnce)
	panics, ended := make(chan any, len(all)), make(chan struct{}, len(all))
	for i, p := range all {
		calls.Go(func() (err error) {
			returned := false
			defer func() {
				if r := recover(); r != nil {
					panics <- r
				} else if !returned {
					ended <- struct{}{}
				}
			}()
			err = do(i, p)
			returned = true
			return err
		})
	}
	err := calls.Wait()
	select {
	case r := <-panics:
		panic(r)
	default:
	}
	if len(ended) > 0 {
		runtime.Goexit()
	}
	return err
}

// participantsAtOnce limits the concurrent requests that read participants.
const participantsAtOnce = 16
