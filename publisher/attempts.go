package publisher

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/journal"
)

// resolveFor is how long the attempts of a commit whose replies were lost are looked for once they
// are not repeated any more. DynamoDB ends a transaction within seconds.
const resolveFor = 5 * time.Second

// attempts are those at one commit whose outcome is open, at least one. Any of them may be written,
// even later, but only one: they all require the same version of the head. So it does no harm to
// add another, and the one that is written first settles all. They are commits of their own, with
// ids and times of their own, because an event that is appended long after its time is not where
// those who tail the journal look for it.
type attempts []*journal.OutcomeUnknownError

// version is what the head must have for any of them.
func (a attempts) version() uint64 { return a[0].First - 1 }

func (a attempts) has(commitID string) bool {
	return slices.ContainsFunc(a, func(u *journal.OutcomeUnknownError) bool { return u.CommitID == commitID })
}

// Error and Unwrap make errors.As find each of them.
func (a attempts) Error() string { return a[len(a)-1].Error() }

func (a attempts) Unwrap() []error {
	errs := make([]error, len(a))
	for i, u := range a {
		errs[i] = u
	}
	return errs
}

// settleOpen finds out whose the place is that a commit was refused: one of its own earlier
// attempts', so it is written, or somebody else's, so none of them ever will be.
func (p *Publisher) settleOpen(ctx context.Context, c *commit, conflict *journal.ConflictError) error {
	first, err := p.first(ctx, c)
	switch {
	case errors.Is(err, errRemoved):
		return errors.Join(c.open, err)
	case err != nil || first == nil:
		return c.open
	case c.open.has(first.CommitID):
		return nil
	default:
		c.open = nil
		return conflict
	}
}

// lookFor waits for the reply that the table can give to attempts that are not repeated any more,
// for err. As long as their place is free one of them may still come.
func (p *Publisher) lookFor(c *commit, err error) error {
	ctx, cancel := context.WithTimeout(p.ctx, p.resolveFor)
	defer cancel()
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(0),
	)
	for {
		first, lookErr := p.first(ctx, c)
		switch {
		case lookErr == nil && first != nil && c.open.has(first.CommitID):
			return nil
		case lookErr == nil && first != nil:
			return &journal.ConflictError{ID: first.Aggregate, Expected: c.open.version(), Actual: first.Number}
		case errors.Is(lookErr, errRemoved):
			return errors.Join(c.open, lookErr)
		case !sleep(ctx, wait.NextBackOff()):
			if errors.Is(err, journal.ErrOutcomeUnknown) || errors.Is(err, journal.ErrConflict) {
				return c.open // a conflict would say that nothing was written
			}
			return errors.Join(c.open, err)
		}
	}
}

// errRemoved: neither another attempt nor another look can tell more.
var errRemoved = errors.New("the event that would tell was removed")

// first reads the event that is where the attempts' first would be; nil if there is none, and
// errRemoved if there was one.
func (p *Publisher) first(ctx context.Context, c *commit) (*journal.Record, error) {
	raw := p.journal.Raw() // only ids are looked at
	id, number := c.open[0].ID, c.open[0].First
	version, err := raw.Version(ctx, id)
	if errors.As(err, new(*journal.DeletedError)) {
		return nil, errRemoved
	}
	if err != nil || version < number {
		return nil, err
	}
	for r, err := range raw.Events(ctx, id, number, number) {
		if errors.As(err, new(*journal.TruncatedError)) {
			return nil, errRemoved
		}
		return r, err
	}
	return nil, errRemoved
}
