package projection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// Errors of [Rows], for errors.Is.
var (
	// ErrRowTaken reports that the item at the key of an aggregate's row belongs to another
	// consumer group or topic, or was not written by [Rows]. Nothing was changed. Use another table
	// or [RowTable].Prefix for each group and topic.
	ErrRowTaken = checkpoint.ErrRowTaken
	// ErrRowKeys reports that the table has other keys than [RowTable] says. Nothing was changed.
	ErrRowKeys = checkpoint.ErrRowKeys
)

// RowClient is the part of a *dynamodb.Client that [Rows] uses.
type RowClient interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// RowTable describes the rows of a read model that has one row for each aggregate. Only Table is
// required. Each consumer group and topic needs its own Table, Prefix or Sort.
type RowTable struct {
	// Table is the table of the rows, without TimeToLive. [CreateTable] creates it, and a [Reader]
	// reads it.
	Table Table
	// Prefix comes before the value of the aggregate's id in the partition key. Default: none.
	Prefix string
	// Sort is the value of the sort key. It is required if Table has a SortKey.
	Sort string
}

// Key returns the key of the row of an aggregate, as requests of the SDK take it.
func (t RowTable) Key(id aggregate.ID) map[string]types.AttributeValue { return t.stored().Key(id) }

func (t RowTable) stored() checkpoint.Rows {
	return checkpoint.Rows{Table: t.Table.Name, PartitionKey: t.Table.PartitionKey, SortKey: t.Table.SortKey, Prefix: t.Prefix, Sort: t.Sort}
}

func (t RowTable) validate() error {
	switch {
	case t.Table.Name == "" || t.Table.PartitionKey == "":
		return &ConfigError{"Table needs a name and a partition key"}
	case t.Table.TimeToLive != "":
		return &ConfigError{"Table has a TimeToLive: a row that expires would be built again from the first event"}
	case (t.Table.SortKey == "") != (t.Sort == ""):
		return &ConfigError{"Sort is the value of Table.SortKey: set both or none"}
	case isReserved(t.Table.PartitionKey) || isReserved(t.Table.SortKey):
		return errReservedKeys
	}
	return nil
}

var errReservedKeys = &ConfigError{fmt.Sprintf("the keys of Table begin with %q, which is reserved", checkpoint.RowAttributes)}

func isReserved(attribute string) bool {
	return strings.HasPrefix(attribute, checkpoint.RowAttributes)
}

// RowUpdate is a change of the row of an aggregate. The zero value changes nothing.
type RowUpdate struct {
	// Expression is an update expression of DynamoDB, such as "SET #s = :s ADD amount :n". It must
	// not change the keys, or attributes whose names begin with "millrace_". The placeholders of
	// Names and Values may not begin with that either.
	Expression string
	// Names and Values are its ExpressionAttributeNames and ExpressionAttributeValues. Default:
	// none.
	Names  map[string]string
	Values map[string]types.AttributeValue
}

// write returns the update as the write of a projection.
func (u RowUpdate) write(r *journal.Record) ([]Write, error) {
	switch {
	case u.usesReserved():
		return nil, &ConfigError{fmt.Sprintf("the update for event %d of %s uses a name that begins with %q, which is reserved", r.Number, r.Aggregate, checkpoint.RowAttributes)}
	case u.Expression == "":
		return nil, nil
	}
	return []Write{Update(types.Update{UpdateExpression: &u.Expression, ExpressionAttributeNames: u.Names, ExpressionAttributeValues: u.Values})}, nil
}

// usesReserved reports whether the update uses a reserved attribute, or a placeholder of the update
// that moves the position.
func (u RowUpdate) usesReserved() bool {
	names := append(slices.Collect(maps.Keys(u.Names)), slices.Collect(maps.Keys(u.Values))...)
	for _, name := range append(names, slices.Collect(maps.Values(u.Names))...) {
		if isReserved(strings.TrimLeft(name, "#:")) {
			return true
		}
	}
	return strings.Contains(u.Expression, checkpoint.RowAttributes)
}

// RowReaction handles one type of event in [Rows], or all of them. [OnRow] and [OnState] make one.
type RowReaction struct {
	reaction Reaction
	ofState  runHandler
}

// EventType returns the type of the events to which the reaction reacts. It is empty for all types.
func (r RowReaction) EventType() string { return r.reaction.eventType }

// OnRow returns a [RowReaction] to events of the type E, which returns the change of the row of the
// event's aggregate. E, and errors of react, are as in [On]. If the change is the zero value, the
// event is acked.
func OnRow[E interface{ EventType() string }](react func(ctx context.Context, event E, record *journal.Record) (RowUpdate, error)) RowReaction {
	if react == nil {
		return RowReaction{} // NewRows refuses it
	}
	return RowReaction{reaction: On(func(ctx context.Context, event E, r *journal.Record) ([]Write, error) {
		u, err := react(ctx, event, r)
		if err != nil {
			return nil, err
		}
		return u.write(r)
	})}
}

// Rows is a projection with one row for each aggregate. The row itself is the position of the
// consumer group on the aggregate. So an event is applied by one update of the row, which costs one
// write unit for each KB of the row, and needs no transaction. [NewRows] and [NewBatchRows] make
// it. It is safe for concurrent use.
//
// Set it as Positions of the subscriber.Config, and its Handle as the handler. See the package
// overview for what others may do with the rows.
type Rows struct {
	projection *Projection
	positions  checkpoint.RowPositions
}

var _ subscriber.PositionStore = (*Rows)(nil)

// NewRows returns a projection to the rows of a table. Errors: [*ConfigError].
func NewRows(client RowClient, table RowTable, config Config, reactions ...RowReaction) (*Rows, error) {
	var plain []Reaction
	var ofState runHandler
	for _, r := range reactions {
		if r.ofState == nil {
			plain = append(plain, r.reaction)
			continue
		}
		if ofState = r.ofState; len(reactions) > 1 {
			return nil, &ConfigError{"OnState is not the only reaction: pass it alone, or OnRow for each type of event"}
		}
	}
	p, err := newProjection(config, plain...)
	if err != nil {
		return nil, err
	}
	p.run, p.ofStates = ofState, ofState != nil
	return newRows(client, table, p)
}

// NewBatchRows returns a projection to the rows of a table that applies each run of events of an
// aggregate by one update. The reactions and the function write are as in [NewBatch], except that
// write returns the change of the row. If that is the zero value, only the position is stored.
//
// Errors: [*ConfigError].
func NewBatchRows[A any](
	client RowClient, table RowTable, config Config, write func(ctx context.Context, sum A, run Run) (RowUpdate, error), reactions ...BatchReaction[A],
) (*Rows, error) {
	if write == nil {
		return nil, &ConfigError{"the function that writes is nil"}
	}
	p, err := newBatch(config, func(ctx context.Context, sum A, run Run) ([]Write, error) {
		u, err := write(ctx, sum, run)
		if err != nil {
			return nil, err
		}
		return u.write(run.Last)
	}, reactions...)
	if err != nil {
		return nil, err
	}
	return newRows(client, table, p)
}

func newRows(client RowClient, table RowTable, p *Projection) (*Rows, error) {
	if client == nil {
		return nil, errNoClient
	}
	if err := table.validate(); err != nil {
		return nil, err
	}
	rows := &Rows{projection: p, positions: checkpoint.RowPositions{Rows: table.stored(), Client: client}}
	p.target = rowTarget{rows}
	return rows, nil
}

// EventTypes returns the names of the events that have a reaction, in alphabetical order.
func (r *Rows) EventTypes() []string { return r.projection.EventTypes() }

// LatestOnly reports whether the rows are computed from states ([OnState]), so that the group may
// begin with the last events (subscriber.Config.LatestOnly).
func (r *Rows) LatestOnly() bool { return r.projection.ofStates }

// Stats returns the current counts.
func (r *Rows) Stats() Stats { return r.projection.Stats() }

// Handle handles a message of a [github.com/millrace-dev/millrace/subscriber] whose
// Config.Positions is r. It is a message.NoPublishHandlerFunc.
//
// Errors: subscriber.ErrNoPosition for other messages, subscriber.ErrFenced if another member of
// the group has taken over, [ErrRowTaken], [ErrRowKeys], [*ConfigError] for an update of a reserved
// attribute and for an event that an upcaster splits into several updates, [*ItemTooLargeError],
// [journal.ErrTableMissing], and the errors of the codec, the reaction and the SDK. After an error
// nothing was written, unless the reply of DynamoDB was lost, as in [Projection.Handle].
func (r *Rows) Handle(msg *message.Message) error { return r.projection.Handle(msg) }

// Claim makes epoch the only one that may advance the position, and returns the position, if there
// is one. It creates the row if it is missing, and replaces a row from before the group's last
// reset by an empty one. It costs one write unit for each KB of the row, and twice that if it
// replaces the row.
//
// Errors: subscriber.ErrFenced if a newer epoch has claimed the position before, [ErrRowTaken],
// [ErrRowKeys], [journal.ErrTableMissing], and the errors of DynamoDB.
func (r *Rows) Claim(ctx context.Context, group subscriber.GroupKey, id aggregate.ID, epoch uint64) (position uint64, found bool, err error) {
	return r.positions.Claim(ctx, checkpoint.Group(group), id, epoch)
}

// Advance moves a claimed position without another change of the row. It costs one write unit for
// each KB of the row.
//
// Errors: subscriber.ErrFenced if another epoch has claimed the position, and those of Claim. After
// other errors claim the position again.
func (r *Rows) Advance(ctx context.Context, group subscriber.GroupKey, id aggregate.ID, epoch, from, to uint64) error {
	return r.positions.Advance(ctx, checkpoint.Group(group), id, epoch, from, to)
}

// Position returns the stored position, if there is one. It is for groups.WithPositions. It costs
// one read unit for each 4 KB of the row.
//
// Errors: those of DynamoDB.
func (r *Rows) Position(ctx context.Context, group subscriber.GroupKey, id aggregate.ID) (position uint64, found bool, err error) {
	return r.positions.Position(ctx, checkpoint.Group(group), id)
}

// PositionRows returns which rows are the positions. The subscriber stores it with the group.
func (r *Rows) PositionRows() subscriber.PositionRows {
	return subscriber.PositionRows(r.positions.Rows)
}

// rowTarget is the target of a projection whose rows are the positions.
type rowTarget struct{ rows *Rows }

func (rowTarget) accepts(r *journal.Record, writes []Write) error {
	if len(writes) > 1 {
		return &ConfigError{fmt.Sprintf("an upcaster splits event %d of %s into events with %d updates of one row: use NewBatchRows, which adds them up",
			r.Number, r.Aggregate, len(writes))}
	}
	return nil
}

func (t rowTarget) commit(ctx context.Context, p *subscriber.Position, run func(context.Context, subscriber.Advance) error) error {
	return p.CommitIn(ctx, t.rows, run)
}

func (t rowTarget) commitAhead(
	ctx context.Context, p *subscriber.Position, most int, run func(context.Context, subscriber.Advance, []*journal.Record) error,
) error {
	return p.CommitAheadIn(ctx, t.rows, most, run)
}

// write updates the row under the condition that it is at the position before. So whatever happens
// to earlier attempts, the row changes once.
func (t rowTarget) write(ctx context.Context, r *journal.Record, a subscriber.Advance, writes []Write) error {
	of := checkpoint.RowOf{Group: checkpoint.Group(a.Group), Aggregate: a.Aggregate, Epoch: a.Epoch}
	update := t.rows.positions.Rows.Advance(of, a.From, a.To)
	for _, w := range writes { // at most one
		merge(update, w.item.Update)
	}
	budget := t.rows.projection.config.RetryBudget
	end := time.Now().Add(budget)
	wait := backoff.WithContext(retry.Pauses(5*time.Millisecond, 500*time.Millisecond, budget), ctx)
	return backoff.Retry(func() error {
		once, cancel := context.WithTimeout(ctx, max(time.Until(end), minAttempt))
		defer cancel()
		err := t.rows.positions.Apply(once, of, update, a.To)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, journal.ErrThrottled), errors.Is(err, journal.ErrContended):
			return err
		case once.Err() != nil && ctx.Err() == nil:
			err = fmt.Errorf("no answer within the RetryBudget of %v: %w", budget, err)
		case isTooLarge(err):
			err = &ItemTooLargeError{Aggregate: r.Aggregate, Number: r.Number, EventType: r.EventType, Table: *update.TableName, Err: err}
		}
		return backoff.Permanent(err)
	}, wait)
}

// merge adds the changes of an update to one that begins with SET.
func merge(into, from *types.Update) {
	position, rest := *into.UpdateExpression, *from.UpdateExpression
	if at := setClause.FindStringIndex(rest); at != nil {
		rest = rest[:at[0]] + " " + position + ", " + rest[at[1]:]
	} else {
		rest = position + " " + rest
	}
	into.UpdateExpression = &rest
	if into.ExpressionAttributeNames == nil && len(from.ExpressionAttributeNames) > 0 {
		into.ExpressionAttributeNames = map[string]string{}
	}
	for name, attribute := range from.ExpressionAttributeNames {
		into.ExpressionAttributeNames[name] = attribute
	}
	for name, value := range from.ExpressionAttributeValues {
		into.ExpressionAttributeValues[name] = value
	}
}
