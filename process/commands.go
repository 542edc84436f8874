package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// maxCommandBytes is the maximum size of the commands of a step. It leaves room for keys in
// DynamoDB's item of 400 KB.
const maxCommandBytes = 390 << 10

// commandsItem returns the row that stores the commands of a step until they are sent.
func (m *Manager[S]) commandsItem(id aggregate.ID, input string, commands []command, now time.Time) (item, error) {
	list, bytes := make([]types.AttributeValue, 0, len(commands)), 0
	for _, c := range commands {
		fields := item{
			"topic": textValue(c.topic), "uuid": textValue(c.message.UUID),
			"payload": &types.AttributeValueMemberB{Value: c.message.Payload},
		}
		metadata.Put(fields, c.message.Metadata)
		list = append(list, &types.AttributeValueMemberM{Value: fields})
		bytes += metadata.Size(c.message.Metadata) + len(c.topic) + len(c.message.UUID) + len(c.message.Payload) + 48
	}
	if bytes > maxCommandBytes {
		return nil, fmt.Errorf("%w: its commands have %d bytes, one item can have %d: store large data elsewhere and send a reference", ErrInvalidStep, bytes, maxCommandBytes)
	}
	row := rowKey(id, commandsPrefix+input)
	row[queueAttribute], row[dueAttribute], row[atAttribute] = textValue(m.queues.of(id)), timeValue(now.Add(m.config.RetryAfter)), timeValue(now)
	row[commandAttribute] = &types.AttributeValueMemberL{Value: list}
	return row, nil
}

func commandsOf(row item) (commands []command, err error) {
	list, ok := row[commandAttribute].(*types.AttributeValueMemberL)
	if !ok {
		return nil, fmt.Errorf("row %q / %q has no list of commands: correct or delete it by hand", text(row[pkey]), text(row[skey]))
	}
	for i, value := range list.Value {
		fields, _ := value.(*types.AttributeValueMemberM)
		if fields == nil {
			return nil, fmt.Errorf("command %d of row %q / %q is not a map: correct or delete it by hand", i+1, text(row[pkey]), text(row[skey]))
		}
		msg := message.NewMessage(text(fields.Value["uuid"]), nil)
		if payload, ok := fields.Value["payload"].(*types.AttributeValueMemberB); ok {
			msg.Payload = payload.Value
		}
		stored, wrong, ok := metadata.Of(fields.Value)
		if !ok {
			return nil, fmt.Errorf("command %d of row %q / %q has metadata %q that is not text: correct or delete it by hand", i+1, text(row[pkey]), text(row[skey]), wrong)
		}
		for key, value := range stored {
			msg.Metadata.Set(key, value)
		}
		commands = append(commands, command{topic: text(fields.Value["topic"]), message: msg})
	}
	return commands, nil
}

// sendStored sends the commands of an input that was handled before, if they were not sent.
func (m *Manager[S]) sendStored(ctx context.Context, id aggregate.ID, input string) error {
	out, err := m.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(m.config.Table), Key: rowKey(id, commandsPrefix+input), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return fmt.Errorf("read the commands of an earlier attempt: %w", err)
	}
	if out.Item == nil {
		return nil
	}
	return m.sendRow(ctx, id, input, out.Item)
}

// sendRow sends the commands of a stored row. The row can be visible before the other items of its
// step. So sendRow first waits for the transaction of the step: the handler of a reply must see the
// process after the step.
func (m *Manager[S]) sendRow(ctx context.Context, id aggregate.ID, input string, row item) error {
	commands, err := commandsOf(row)
	if err == nil {
		err = m.awaitCommit(ctx, id)
	}
	if err != nil {
		return err
	}
	return m.send(ctx, id, input, commands)
}

// awaitCommit waits for the commit to a process that is in progress, if there is one. The result is
// the same for a commit that was written, which causes a conflict, and for one that was not.
func (m *Manager[S]) awaitCommit(ctx context.Context, id aggregate.ID) error {
	version, err := m.journal.Version(ctx, id)
	if err == nil || errors.Is(err, journal.ErrNotFound) {
		err = m.journal.Unchanged(ctx, []storage.Place{{Aggregate: id, Version: version}})
	}
	if errors.Is(err, journal.ErrConflict) || errors.As(err, new(*journal.DeletedError)) {
		return nil
	}
	return err
}

// send sends the commands of a stored step, and deletes their row.
func (m *Manager[S]) send(ctx context.Context, id aggregate.ID, input string, commands []command) error {
	if len(commands) == 0 {
		return nil
	}
	for _, c := range commands {
		if err := m.sendings.send(ctx, m.config.Publisher, c); err != nil {
			return fmt.Errorf("send command %s (%s) to %q: %w", c.message.UUID, c.message.Metadata.Get("name"), c.topic, err)
		}
		m.stats.commands.Add(1)
	}
	_, err := m.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(m.config.Table), Key: rowKey(id, commandsPrefix+input)})
	if err != nil {
		m.config.Logger.Info("Commands were sent but cannot be deleted, so they will be sent again", m.fields(id, watermill.LogFields{"input": input, "err": err}))
	}
	return nil
}
