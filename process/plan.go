package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
)

// plan holds the writes of a step in the transaction of its events.
type plan struct {
	writes   []types.TransactWriteItem
	timeouts map[string]types.TransactWriteItem // those of writes to timeouts, by name
	commands []command
}

func (p plan) writesOf(repository.Commit) ([]types.TransactWriteItem, error) { return p.writes, nil }

// command is a message with its topic.
type command struct {
	topic   string
	message *message.Message
}

// derived is the namespace of UUIDs that are derived from a process, an input and a part of the
// step. They are the same at each attempt.
var derived = uuid.MustParse("6c9c8a5e-0d1f-4e43-9a55-5e0b8d0f7a31")

func derive(id aggregate.ID, in Input, what string) string {
	return uuid.NewSHA1(derived, fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s", id.Type, id.Value, in.ID, what)).String()
}

func (m *Manager[S]) plan(ctx context.Context, process repository.Aggregate[S], in Input, step Step[S], fired *timeoutRow) (p plan, err error) {
	if !m.ownClock {
		// The load has just learned the time of DynamoDB.
		if err := m.journal.ConfirmClock(ctx); err != nil {
			return p, err
		}
	}
	if err := m.checkNumber(ctx, process, step); err != nil {
		return p, err
	}
	id, now := process.ID, m.config.Now()
	if p.writes, err = m.listing(process, step, now); err != nil {
		return p, err
	}
	if len(step.timeouts) > 0 || len(step.commands) > 0 {
		if err := m.queues.prepare(ctx); err != nil {
			m.config.Logger.Info("Timeouts and commands go to fewer queues than configured: the stored number could not be raised", m.fields(id, watermill.LogFields{"err": err}))
		}
	}
	carried := aggregate.MetadataFromContext(ctx)
	p.timeouts = m.timeoutWrites(id, in, step, fired, carried, now)
	for _, name := range slices.Sorted(maps.Keys(p.timeouts)) {
		p.writes = append(p.writes, p.timeouts[name])
	}
	if len(step.commands) == 0 {
		return p, nil
	}
	if p.commands, err = m.commands(id, in, carried, step.commands); err != nil {
		return p, err
	}
	item, err := m.commandsItem(id, in.ID, p.commands, now)
	p.writes = append(p.writes, types.TransactWriteItem{Put: &types.Put{TableName: aws.String(m.config.Table), Item: item}})
	return p, err
}

// timeoutWrites returns the writes to the rows of the timeouts that a step sets, moves or cancels,
// and of the timeout that has fired.
func (m *Manager[S]) timeoutWrites(
	id aggregate.ID, in Input, step Step[S], fired *timeoutRow, carried aggregate.Metadata, now time.Time,
) map[string]types.TransactWriteItem {
	timeouts := map[string]types.TransactWriteItem{}
	if fired != nil {
		timeouts[fired.name] = types.TransactWriteItem{Delete: m.deleteTimeout(id, fired.name)}
	}
	for _, name := range step.cancelled {
		timeouts[name] = types.TransactWriteItem{Delete: m.deleteTimeout(id, name)}
	}
	for _, t := range step.timeouts {
		at := t.At
		if at.IsZero() {
			at = now.Add(t.After)
		}
		row := timeoutRow{process: id, name: t.Name, token: derive(id, in, "timeout "+t.Name), at: at, metadata: maps.Clone(carried)}
		delete(row.metadata, aggregate.CausationIDKey) // the timeout will be the cause
		timeouts[t.Name] = types.TransactWriteItem{Put: &types.Put{TableName: aws.String(m.config.Table), Item: m.timeoutItem(row)}}
	}
	if fired != nil {
		timeouts[fired.name] = onlyIf(timeouts[fired.name], fired.token)
	}
	return timeouts
}

// onlyIf adds the condition that the timeout has not changed since it fired.
func onlyIf(write types.TransactWriteItem, token string) types.TransactWriteItem {
	const still = "#t = :fired"
	names := map[string]string{"#t": tokenAttribute}
	values := map[string]types.AttributeValue{":fired": &types.AttributeValueMemberS{Value: token}}
	if d := write.Delete; d != nil {
		d.ConditionExpression, d.ExpressionAttributeNames, d.ExpressionAttributeValues = aws.String(still), names, values
	} else {
		write.Put.ConditionExpression, write.Put.ExpressionAttributeNames, write.Put.ExpressionAttributeValues = aws.String(still), names, values
	}
	return write
}

func (m *Manager[S]) commands(id aggregate.ID, in Input, carried aggregate.Metadata, values []any) (commands []command, err error) {
	if m.config.Publisher == nil {
		return nil, &ConfigError{"Publisher", "is nil, and a reaction sends commands: set it"}
	}
	for i, value := range values {
		msg, err := m.config.Marshaler.Marshal(value)
		if err == nil && msg == nil {
			err = errors.New("the marshaler returned no message")
		}
		if err != nil {
			return nil, fmt.Errorf("command %d (%T): %w", i+1, value, err)
		}
		topic, err := m.config.GeneratePublishTopic(cqrs.CommandBusGeneratePublishTopicParams{CommandName: m.config.Marshaler.Name(value), Command: value})
		if err != nil {
			return nil, fmt.Errorf("topic of command %d (%T): %w", i+1, value, err)
		}
		if msg.Metadata == nil {
			msg.Metadata = message.Metadata{}
		}
		msg.UUID = derive(id, in, "command "+strconv.Itoa(i))
		for key, value := range carried {
			setDefault(msg, key, value)
		}
		// The commands of a process stay in order.
		setDefault(msg, publisher.AggregateIDKey, id.Value)
		commands = append(commands, command{topic, msg})
	}
	return commands, nil
}

func setDefault(msg *message.Message, key, value string) {
	if msg.Metadata.Get(key) == "" && value != "" {
		msg.Metadata.Set(key, value)
	}
}
