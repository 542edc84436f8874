package process

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/units"
	"github.com/millrace-dev/millrace/repository"
)

// openRow is the sort key of the row that a process has from its first step until a step makes it
// over. The row is not in the index.
const openRow = "open"

// OpenProcess is a process that has begun and is not over.
type OpenProcess struct {
	Process aggregate.ID
	// Begun is when its first step was stored, by the clock of the manager.
	Begun time.Time
}

// listing returns the write of a step to the list of open processes. Most steps have none.
func (m *Manager[S]) listing(process repository.Aggregate[S], step Step[S], now time.Time) ([]types.TransactWriteItem, error) {
	if m.definition.over == nil { // its processes have no end
		return nil, nil
	}
	after, err := m.processes.Copy(process) // Apply may change what the state refers to
	if err != nil {
		return nil, err
	}
	m.definition.aggregate.Apply(&after.State, step.events...)
	begins, ends := process.Version == 0, m.definition.IsOver(after.State)
	row := rowKey(process.ID, openRow)
	switch {
	case begins && !ends:
		row[atAttribute] = timeValue(now)
		return []types.TransactWriteItem{{Put: &types.Put{TableName: aws.String(m.config.Table), Item: row}}}, nil
	case ends && !begins:
		return []types.TransactWriteItem{{Delete: &types.Delete{TableName: aws.String(m.config.Table), Key: row}}}, nil
	}
	return nil, nil
}

// Open returns the processes that have begun and are not over, in no order, also those that have
// nothing pending. Query.Before selects the ones that began before that time. Only processes whose
// definition has [Definition.OverWhen] are listed. The sequence ends with the first error.
//
// The first step of a process adds it to the list in its transaction, and the step that makes it
// over removes it. So the list differs from the journal in these cases only:
//
//   - A process that began before its definition had OverWhen is not listed.
//   - A process that was deleted from the journal, or that a changed OverWhen makes over without a
//     step, stays until [Backlog.Unlist].
//   - A process that a changed OverWhen opens again is not listed.
//
// It costs half a read unit for each 4 KB of the whole table, eventually consistent, also for rows
// that the query does not select. About 40 processes fit in 4 KB. For one process it costs one read
// unit.
//
// Errors: as of Pending.
func (b *Backlog) Open(ctx context.Context, query Query) iter.Seq2[OpenProcess, error] {
	return func(yield func(OpenProcess, error) bool) {
		for row, err := range b.rows(ctx, query, true) {
			if err != nil {
				yield(OpenProcess{}, fmt.Errorf("read which processes are open: %w", err))
				return
			}
			if !yield(OpenProcess{Process: processOf(row), Begun: timeOf(row[atAttribute])}, nil) {
				return
			}
		}
	}
}

// Unlist removes a process from the list of open ones, as its last step would. Nothing else of it
// changes. If the process goes on, it is not listed again. It costs one write unit.
//
// Errors: [ErrNotPending] if it is not listed, those of Pending.
func (b *Backlog) Unlist(ctx context.Context, id aggregate.ID) error {
	_, err := units.Send(ctx, &dynamodb.DeleteItemInput{
		TableName: &b.table, Key: rowKey(id, openRow), ConditionExpression: aws.String("attribute_exists(#p)"),
		ExpressionAttributeNames: map[string]string{"#p": pkey},
	}, b.client.DeleteItem, nil)
	switch {
	case err == nil:
		return nil
	case isConditionFalse(err):
		return &notListedError{id}
	}
	return fmt.Errorf("unlist process %s: %w", id, explain(err, b.table))
}

// notListedError is [ErrNotPending] about a process that is not listed as open.
type notListedError struct{ process aggregate.ID }

func (e *notListedError) Error() string {
	return fmt.Sprintf("unlist process %s: it is not listed as open", e.process)
}
func (e *notListedError) Unwrap() error { return ErrNotPending }
