package process

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/metadata"
)

// timeoutRow is a timeout that is set.
type timeoutRow struct {
	process aggregate.ID
	name    string
	// Another token each time that the timeout is set.
	token    string
	at       time.Time
	metadata aggregate.Metadata // for the step of the timeout
	// Writes of its step to the timeouts of the process, by name. They are known when it has fired.
	step map[string]types.TransactWriteItem
}

func (m *Manager[S]) timeoutItem(t timeoutRow) item {
	row := rowKey(t.process, timeoutPrefix+t.name)
	row[queueAttribute], row[dueAttribute], row[atAttribute] = textValue(m.queues.of(t.process)), timeValue(t.at), timeValue(t.at)
	row[tokenAttribute] = textValue(t.token)
	metadata.Put(row, t.metadata)
	return row
}

func (m *Manager[S]) deleteTimeout(id aggregate.ID, name string) *types.Delete {
	return &types.Delete{TableName: aws.String(m.config.Table), Key: rowKey(id, timeoutPrefix+name)}
}

// take handles one row unless another manager holds it. It calls leased once, when it knows whether
// another manager holds the row. Own reports whether the lease succeeded. Fired is the timeout that
// the row was, if its attempt did not fail.
func (m *Manager[S]) take(ctx context.Context, row item, leased func(lost bool)) (own bool, fired *timeoutRow, err error) {
	id, sort, lost := m.idOf(row), text(row[skey]), false
	known := sync.OnceFunc(func() { leased(lost) })
	defer known() // if the lease fails or panics
	// This function runs after the deferred function below, because a panic is a failure too.
	defer func(ctx context.Context) {
		if err != nil {
			m.countFailed(ctx)
			m.keepFailure(ctx, row, err)
		}
	}(ctx)
	// No caller recovers. Without this, the row would be due again in the next program.
	defer func() {
		if cause := recover(); cause != nil {
			fired, err = nil, fmt.Errorf("process %s: %q panics: %v\n%s", id, sort, cause, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, m.config.RetryAfter)
	defer cancel()
	row, err = m.lease(ctx, row)
	if err != nil {
		return false, nil, fmt.Errorf("process %s: lease %q: %w", id, sort, err)
	}
	lost = row == nil
	if known(); lost {
		return false, nil, nil
	}
	own = true
	fired, err = m.handleRow(ctx, id, sort, row)
	return own, fired, err
}

// handleRow sends the commands of a leased row, or fires its timeout.
func (m *Manager[S]) handleRow(ctx context.Context, id aggregate.ID, sort string, row item) (fired *timeoutRow, err error) {
	if input, ok := strings.CutPrefix(sort, commandsPrefix); ok {
		if err := m.sendRow(ctx, id, input, row); err != nil {
			return nil, fmt.Errorf("process %s: input %s: %w", id, input, err)
		}
		return nil, nil
	}
	name, ok := strings.CutPrefix(sort, timeoutPrefix)
	if !ok {
		return nil, fmt.Errorf("process %s: row %q: %w", id, sort, errUnknownRow)
	}
	timeout := &timeoutRow{process: id, name: name, token: text(row[tokenAttribute]), at: timeOf(row[atAttribute])}
	// The timeout fires even if its metadata were damaged by hand.
	timeout.metadata, _, _ = metadata.Of(row)
	if err := m.fire(ctx, timeout); err != nil {
		return nil, fmt.Errorf("process %s: timeout %q: %w", id, name, err)
	}
	return timeout, nil
}

// lease makes a row due later and returns the whole row, or nil if another manager was faster.
func (m *Manager[S]) lease(ctx context.Context, row item) (item, error) {
	out, err := m.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(m.config.Table), Key: item{pkey: row[pkey], skey: row[skey]},
		UpdateExpression:         aws.String("SET #d = :later ADD #a :one"),
		ConditionExpression:      aws.String("#d = :seen"),
		ExpressionAttributeNames: map[string]string{"#d": dueAttribute, "#a": attemptsAttribute},
		ExpressionAttributeValues: item{
			":seen": row[dueAttribute], ":later": timeValue(m.config.Now().Add(m.config.RetryAfter)), ":one": &types.AttributeValueMemberN{Value: "1"},
		},
		ReturnValues: types.ReturnValueAllNew,
	})
	if isConditionFalse(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// fire calls the reaction of a process to a timeout. The row is deleted in the transaction of the
// step, or separately if there is nothing to do.
func (m *Manager[S]) fire(ctx context.Context, t *timeoutRow) error {
	in := Input{ID: t.token, OccurredAt: t.at, Metadata: t.metadata, Timeout: t.name, Process: t.process.Value}
	_, in.TimeoutKey, _ = m.definition.timeout(t.name)
	err := m.step(ctx, in, t)
	switch {
	case err == nil && t.step != nil, errors.Is(err, errNotSet):
		return nil
	case err == nil: // an earlier attempt has fired it, and its row came back with a restored table
	case isIgnored(err):
		m.stats.ignored.Add(1)
	default:
		return err
	}
	gone := onlyIf(types.TransactWriteItem{Delete: m.deleteTimeout(t.process, t.name)}, t.token).Delete
	_, err = m.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: gone.TableName, Key: gone.Key, ConditionExpression: gone.ConditionExpression,
		ExpressionAttributeNames: gone.ExpressionAttributeNames, ExpressionAttributeValues: gone.ExpressionAttributeValues,
	})
	if isConditionFalse(err) {
		return nil
	}
	return err
}

func isConditionFalse(err error) bool {
	var failed *types.ConditionalCheckFailedException
	return errors.As(err, &failed)
}
