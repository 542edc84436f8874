package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// AppendJoint writes to several aggregates in one TransactWriteItems, in both layouts: all
// parts, or nothing. The parts share one commit id. A part without events costs a condition
// check: two write units for each KB of its head in Classic, and two units in Packed. A
// CommandID costs an additional guard of two units or more.
//
// It returns the receipts of the parts, in their order. The errors are those of Append. If the
// command was executed before, the *DuplicateCommandError has no aggregate.
func (j *Engine) AppendJoint(ctx context.Context, c storage.Joint) ([]storage.Receipt, error) {
	drafts, err := j.draftJoint(ctx, &c)
	if err != nil {
		return nil, err
	}
	t := &jointCommit{Engine: j, id: drafts[0].Receipt.CommitID, commandID: c.CommandID}
	t.token = t.id
	for _, d := range drafts {
		p, err := j.Layout.Part(ctx, d)
		if err != nil {
			return nil, err
		}
		t.parts = append(t.parts, p)
	}
	if err := t.build(drafts); err != nil {
		return nil, err
	}
	if err := j.Send(ctx, t); err != nil {
		return nil, err
	}
	for _, p := range t.parts {
		p.Notify()
	}
	receipts := make([]storage.Receipt, len(t.parts))
	var finishing errgroup.Group
	finishing.SetLimit(finishesAtOnce)
	for i, p := range t.parts {
		finishing.Go(func() error {
			receipts[i] = p.Finish(ctx)
			return nil
		})
	}
	return receipts, finishing.Wait()
}

// finishesAtOnce is the number of parts that store their snapshots at the same time.
const finishesAtOnce = 16

// draftJoint validates and encodes the parts, which share one commit id.
func (j *Engine) draftJoint(ctx context.Context, c *storage.Joint) ([]Draft, error) {
	if err := j.validateJoint(c); err != nil {
		return nil, err
	}
	drafts := make([]Draft, len(c.Parts))
	for i, p := range c.Parts {
		var err error
		if drafts[i], err = j.draft(ctx, p); err != nil {
			return nil, err
		}
		drafts[i].Beside = &Beside{}
		drafts[i].Receipt.CommitID = drafts[0].Receipt.CommitID
	}
	for i := range drafts {
		for k := range c.Parts {
			if err := j.validateWritesBeside(drafts[i].Commit, drafts[k].Commit); err != nil {
				return nil, err
			}
		}
	}
	return drafts, nil
}

func (j *Engine) validateJoint(c *storage.Joint) error {
	events, actions := 0, 0
	if c.CommandID != "" {
		actions++
	}
	known := map[aggregate.ID]bool{}
	for _, p := range c.Parts {
		if known[p.Aggregate] {
			return fmt.Errorf("append to several aggregates: %w: %s is among them twice: take it once, with all of its events", journaltype.ErrInvalidCommit, p.Aggregate)
		}
		known[p.Aggregate] = true
		if p.CommandID != "" {
			return fmt.Errorf("append to %s: %w: the command id is that of the whole commit", p.Aggregate, journaltype.ErrInvalidCommit)
		}
		events += len(p.Events)
		actions += j.leastActions(&p)
	}
	switch {
	case len(c.Parts) == 0 || events == 0 && c.CommandID == "":
		return fmt.Errorf("append to several aggregates: %w: it has no events", journaltype.ErrInvalidCommit)
	case actions > storage.MaxActions:
		return &journaltype.TooLargeError{ID: c.Parts[0].Aggregate, What: "the commit to all aggregates", Size: actions, Limit: storage.MaxActions, Unit: storage.UnitActions}
	}
	if err := validateCommandID(c.CommandID); err != nil {
		return fmt.Errorf("append to %s: %w", c.Parts[0].Aggregate, err)
	}
	return nil
}

// leastActions returns the smallest number of actions that a part can have.
func (j *Engine) leastActions(c *storage.Commit) int {
	if j.EventsApart {
		return 1 + len(c.Events) + len(c.Writes)
	}
	return 1 + len(c.Writes)
}

// jointCommit is a commit to several aggregates in the form in which it is sent. It is one
// transaction of parts. Each part has the form of a commit to its aggregate alone.
type jointCommit struct {
	*Engine
	id        string
	commandID string
	parts     []Part
	token     string // replaced after each change of the request
	begun     time.Time
	guard     table.Item // of the command; nil if there is none
	first     int        // index of the first part with events, or 0
}

func (t *jointCommit) build(drafts []Draft) error {
	at := t.Date()
	t.begun, t.first = at.Begun, max(0, slices.IndexFunc(drafts, func(d Draft) bool { return len(d.Events) > 0 }))
	t.setGuard(drafts, at.OccurredAt)
	// actions and bytes are the sizes of the parts built so far, plus an estimate of the rest.
	actions, bytes := len(t.actionsOf(nil)), table.ItemSize(t.guard)
	for _, d := range drafts {
		actions += t.leastActions(d.Commit)
		bytes += t.bytesOf(&d)
	}
	for i, p := range t.parts {
		least, estimated := t.leastActions(drafts[i].Commit), t.bytesOf(&drafts[i])
		*drafts[i].Beside = Beside{Actions: actions - least, Bytes: bytes - estimated, Parts: len(drafts) - 1}
		if err := p.Build(at); err != nil {
			return err
		}
		actions += len(p.Actions()) - least
		bytes += p.Bytes() - estimated
	}
	switch id, what := drafts[0].Aggregate, "the commit to all aggregates"; {
	case bytes > storage.MaxCommitBytes:
		return &journaltype.TooLargeError{ID: id, What: what, Size: bytes, Limit: storage.MaxCommitBytes, Unit: storage.UnitBytes}
	case actions > storage.MaxActions:
		return &journaltype.TooLargeError{ID: id, What: what, Size: actions, Limit: storage.MaxActions, Unit: storage.UnitActions}
	}
	return nil
}

// bytesOf estimates the size of a part without what a layout can leave out. The estimate is rarely
// too low.
func (t *jointCommit) bytesOf(d *Draft) (bytes int) {
	bytes = 1<<10 + 2*len(d.Aggregate.String()) // of a head
	for _, e := range d.Encoded {
		bytes += t.Layout.EventSize(d.Aggregate, e, 0)
	}
	for _, w := range d.Writes {
		bytes += table.WriteSize(w)
	}
	return bytes
}

// The methods below make jointCommit a table.Sending.

func (t *jointCommit) Target() string {
	targets := make([]string, len(t.parts))
	for i, p := range t.parts {
		targets[i] = p.Target()
	}
	return strings.Join(targets, ", ")
}

func (t *jointCommit) BegunAt() time.Time { return t.begun }

// actionsOf returns the action of the guard, if there is one, and the actions of the given parts.
func (t *jointCommit) actionsOf(parts []Part) (actions []types.TransactWriteItem) {
	if t.guard != nil {
		actions = append(actions, t.PutNew(t.Config.Tables.Journal, t.guard))
	}
	for _, p := range parts {
		actions = append(actions, p.Actions()...)
	}
	return actions
}

func (t *jointCommit) Attempt(ctx context.Context) error {
	_, err := t.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: t.actionsOf(t.parts), ClientRequestToken: &t.token,
	}, table.Once)
	return err
}

// IsWritten checks one part, since either all parts are written or none.
func (t *jointCommit) IsWritten(ctx context.Context) (bool, error) {
	if written, err := t.parts[t.first].IsWritten(ctx); written || err != nil || t.guard == nil {
		return written, err
	}
	// The events may have been removed.
	command, executed, err := t.Engine.jointCommand(ctx, t.commandID)
	return executed && command.CommitID == t.id, err
}

func (t *jointCommit) Redate(now time.Time) {
	for _, p := range t.parts {
		p.Redate(now)
	}
	t.dateGuard(now)
	// DynamoDB may remember the earlier request under the old token.
	t.token = t.Config.NewID()
}

func (t *jointCommit) Explain(err error) error { return t.ExplainActions(err, t.actionsOf(t.parts)) }

func (t *jointCommit) Unknown(err error) *journaltype.OutcomeUnknownError {
	unknown := t.parts[t.first].Unknown(err)
	unknown.Joint, unknown.CommandID = true, t.commandID
	return unknown
}

// Refusal returns the refusal of the first part whose condition was false. A condition that is
// false stays false, unless a head was put back. So no earlier attempt can still be written. If
// parts can be adapted to what is stored, all of them are adapted at once.
func (t *jointCommit) Refusal(ctx context.Context, err error, ambiguous bool, left time.Duration) error {
	var reasons []types.CancellationReason
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) && len(canceled.CancellationReasons) == len(t.actionsOf(t.parts)) {
		reasons = canceled.CancellationReasons
	}
	if ambiguous {
		if done, readErr := table.IsWrittenWithin(ctx, t, left); done {
			return nil
		} else if readErr != nil || !slices.ContainsFunc(reasons, table.ConditionFailed) {
			return t.Unknown(err)
		}
	}
	if reasons == nil {
		return fmt.Errorf("append to %s, nothing written: %w", t.Target(), t.Explain(err))
	}
	if t.guard != nil {
		if guard := reasons[0]; table.ConditionFailed(guard) {
			return t.duplicate(guard.Item)
		}
		reasons = reasons[1:]
	}
	// A refused write counts only if no part has a conflict.
	var write error
	adapted, until := false, time.Now().Add(left)
	for _, p := range t.parts {
		own := reasons[:len(p.Actions())]
		reasons = reasons[len(own):]
		if !slices.ContainsFunc(own, table.IsFinal) {
			continue
		}
		err := p.Refusal(ctx, &types.TransactionCanceledException{Message: canceled.Message, CancellationReasons: own}, ambiguous, time.Until(until))
		switch {
		case errors.Is(err, table.ErrSendAgain):
			adapted = true // other parts may need it too, before the next attempt
		case errors.Is(err, journaltype.ErrOutcomeUnknown):
			return t.Unknown(canceled)
		case errors.As(err, new(*journaltype.WriteRefusedError)):
			write = cmp.Or(write, err)
		default:
			return err
		}
	}
	switch {
	case write != nil:
		return write
	case adapted:
		t.token = t.Config.NewID()
		return table.ErrSendAgain
	}
	return fmt.Errorf("append to %s, nothing written: %w", t.Target(), t.Explain(err))
}

// Unchanged returns nil if all aggregates are at the given versions at one moment, and
// otherwise a *ConflictError for one of them. It reads them in one transaction, so it sees
// either all of a commit or nothing. The versions must be proven, see Commit.Proven. In Packed
// it only checks whether a commit follows each version; for a place with Kept it also reads the
// last commit. While it meets other transactions, it also checks with plain reads whether an
// aggregate has changed.
//
// In Classic it costs two read units for each 4 KB of a head. In Packed it costs two for each
// aggregate, plus a query of the last commit for a place with Kept.
//
// Errors: *TooLargeError for more than 100 aggregates, or for heads of more than 4 MB together,
// ErrRestored (layout Packed), ErrThrottled, ErrContended, ErrTableMissing, ErrAccess,
// *CorruptItemError, *DeletedError for a place with Kept, *aggregate.InvalidIDError, and the
// error of ctx.
func (j *Engine) Unchanged(ctx context.Context, places []storage.Place) error {
	if len(places) > storage.MaxActions {
		return &journaltype.TooLargeError{ID: places[0].Aggregate, What: "the check of versions", Size: len(places), Limit: storage.MaxActions, Unit: storage.UnitActions}
	}
	for _, p := range places {
		if err := p.Aggregate.Validate(); err != nil {
			return err
		}
	}
	err := j.Layout.Unchanged(ctx, places)
	if err != nil && !errors.Is(err, journaltype.ErrConflict) {
		return fmt.Errorf("compare versions: %w", err)
	}
	return err
}

// resolveJoint implements Resolve for a commit to several aggregates.
func (j *Engine) resolveJoint(ctx context.Context, unknown *journaltype.OutcomeUnknownError) (bool, error) {
	alone := *unknown
	alone.CommandID = "" // its guard is in a partition of its own
	written, _, err := j.Layout.LookFor(ctx, &alone)
	if err == nil && !written && unknown.CommandID != "" {
		_, written, err = j.jointCommand(ctx, unknown.CommandID)
	}
	if err != nil {
		return false, fmt.Errorf("resolve commit %s: %w", unknown.CommitID, err)
	}
	return written, nil
}
