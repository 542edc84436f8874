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

// openRow is the sort key of the row that a process has from its first step until a step ends it.
// The row is not in the index.
const openRow = "open"

// OpenProcess is a process that has begun and has not ended.
type OpenProcess struct {
	Process aggregate.ID // the process
	// Begun is when the first step of the process was stored, by the clock of the manager.
	Begun time.Time
}

// listing returns the write of a step to the list of open processes. Most steps have none.
func (m *Manager[S]) listing(process repository.Aggregate[S], step Step[S], now time.Time) ([]types.TransactWriteItem, error) {
	if m.definition.ended == nil { // its processes have no end
		return nil, nil
	}
	after, err := m.processes.Copy(process) // Apply may change shared memory
	if err != nil {
		return nil, err
	}
	m.definition.aggregate.Apply(&after.State, step.events...)
	begins, ends := process.Version == 0, m.definition.Ended(after.State)
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

// OpenProcesses yields the processes that have begun and have not ended, in no order, including
// those without pending work. Query.Before selects the ones that began before that time. Only
// processes whose definition has [Definition.EndsWhen] are listed. The sequence ends with the first
// error.
//
// The first step of a process adds it to the list in its transaction, and the step that ends it
// removes it. So the list differs from the journal only in these cases:
//
//   - A process that began before its definition had EndsWhen is not listed.
//   - A process that was deleted from the journal, or that has ended because EndsWhen was changed,
//     stays listed until [Backlog.Unlist].
//   - A process that is open again because EndsWhen was changed is not listed.
//
// It costs half a read unit for each 4 KB of the whole table, eventually consistent, including rows
// that the query does not select. About 40 processes fit in 4 KB. For one process it costs one read
// unit.
//
// Errors: those of Pending.
func (b *Backlog) OpenProcesses(ctx context.Context, query BacklogQuery) iter.Seq2[OpenProcess, error] {
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

// Unlist removes a process from the list of open ones, as its last step would. It changes nothing
// else. If the process continues, it is not listed again. It costs one write unit.
//
// Errors: [ErrNotPending] if it is not listed, and those of Pending.
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

// notListedError is an [ErrNotPending] about a process that is not listed as open.
type notListedError struct{ process aggregate.ID }

func (e *notListedError) Error() string {
	return fmt.Sprintf("unlist process %s: it is not listed as open", e.process)
}
func (e *notListedError) Unwrap() error { return ErrNotPending }
