package publisher

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
)

// resolveFor is the time for which the publisher reads the table after the last attempt of a commit
// whose replies were lost. DynamoDB ends a transaction within seconds.
const resolveFor = 5 * time.Second

// attempts are the attempts of one commit whose outcome is unknown; there is at least one. One of
// them may be written, even later. No second one can be written, since all of them require the same
// version of the head. So a further attempt is safe.
//
// Each attempt is a commit with its own id and time. An event that is appended long after its time
// would be at a place in the tail that subscribers have already read.
type attempts []*journal.OutcomeUnknownError

// version returns the version that all attempts require.
func (a attempts) version() uint64 { return a[0].First - 1 }

func (a attempts) has(commitID string) bool {
	return slices.ContainsFunc(a, func(u *journal.OutcomeUnknownError) bool { return u.CommitID == commitID })
}

// Error returns the text of the last attempt. errors.As finds each attempt by Unwrap.
func (a attempts) Error() string { return a[len(a)-1].Error() }

func (a attempts) Unwrap() []error {
	errs := make([]error, len(a))
	for i, u := range a {
		errs[i] = u
	}
	return errs
}

// resolveOpen reads the event that stands in the place of a refused commit. If an earlier attempt
// of the commit has written it, the commit is written. If another writer has written it, none of
// the attempts will ever be written.
func (p *Publisher) resolveOpen(ctx context.Context, c *commit, conflict *journal.ConflictError) error {
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

// lookFor reads the table until it shows the outcome of the attempts, after their commit has failed
// with err. While their place is free, one of them may still be written.
func (p *Publisher) lookFor(c *commit, err error) error {
	ctx, cancel := context.WithTimeout(p.ctx, p.resolveFor)
	defer cancel()
	wait := retry.Pauses(20*time.Millisecond, time.Second, 0)
	for {
		first, lookErr := p.first(ctx, c)
		switch {
		case lookErr == nil && first != nil && c.open.has(first.CommitID):
			return nil
		case lookErr == nil && first != nil:
			return &journal.ConflictError{ID: first.Aggregate, Expected: c.open.version(), Actual: first.Number}
		case errors.Is(lookErr, errRemoved):
			return errors.Join(c.open, lookErr)
		case !retry.Sleep(ctx, wait.NextBackOff()):
			if errors.Is(err, journal.ErrOutcomeUnknown) || errors.Is(err, journal.ErrConflict) {
				return c.open // a conflict would mean that nothing was written
			}
			return errors.Join(c.open, err)
		}
	}
}

// errRemoved reports that neither another attempt nor another read can show the outcome.
var errRemoved = errors.New("the event that would show the outcome was removed")

// first reads the event with the number of the attempts' first event. It returns nil if there is no
// such event, and errRemoved if it was removed.
func (p *Publisher) first(ctx context.Context, c *commit) (*journal.Record, error) {
	raw := p.journal.Raw() // only ids are compared
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
