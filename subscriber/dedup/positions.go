package dedup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
)

// Gaps says what becomes of an event that is not the next one.
type Gaps int

const (
	// RefuseGaps lets the message come again until the events before it have been handled.
	RefuseGaps Gaps = iota
	// PassGaps handles it, and drops events before it that come later.
	PassGaps
)

// PositionsConfig configures [Positions]. Only Group is required.
type PositionsConfig struct {
	// Table is the name of the table. Default: [DefaultTable].
	Table string
	// Group is whose positions they are. Each handler that is to get an event needs a group of its
	// own, and all processes of a handler the same one. At most 255 bytes, no slash.
	Group string
	// Gaps says what becomes of an event that is not the next one. Default: [RefuseGaps].
	Gaps Gaps
	// RequestTimeout is how long a request may take, with the SDK's retries, also where the context
	// has more time or no end: other events of the aggregate wait meanwhile. Default: 5 seconds.
	RequestTimeout time.Duration
}

// Positions knows, for each aggregate, the last event that a group has handled. It is safe for
// concurrent use.
type Positions struct {
	client Client
	config PositionsConfig
	turns  turns
}

// NewPositions makes no requests. [CreateTable] makes the table.
//
// Errors: [*ConfigError].
func NewPositions(client Client, config PositionsConfig) (*Positions, error) {
	if err := checkClient(client); err != nil {
		return nil, err
	}
	if err := setTable(&config.Table, "Table"); err != nil {
		return nil, err
	}
	if err := checkGroup(config.Group); err != nil {
		return nil, err
	}
	if config.Gaps != RefuseGaps && config.Gaps != PassGaps {
		return nil, &ConfigError{Field: "Gaps", Reason: "is neither RefuseGaps nor PassGaps"}
	}
	if config.RequestTimeout < 0 {
		return nil, &ConfigError{Field: "RequestTimeout", Reason: "is negative: leave it 0 for 5 seconds"}
	}
	if config.RequestTimeout == 0 {
		config.RequestTimeout = 5 * time.Second
	}
	return &Positions{client: client, config: config, turns: turns{byID: map[aggregate.ID]*turn{}}}, nil
}

// Middleware is a message.HandlerMiddleware for handlers of forwarded events. Put it outside of
// middlewares that retry and of a poison queue, so that what the poison queue took counts as
// handled.
//
// The handlers must not return messages. Messages of one aggregate wait for each other, as long as
// their contexts last.
//
// Errors: [ErrNoEvent], [ErrPart], [ErrDeferred], [*GapError] and [ErrProduced]; those of the
// handler; [journal.ErrTableMissing], [journal.ErrThrottled], [journal.ErrAccess], those of the
// context and the SDK. After any of them the message is to come again: the position has not moved,
// unless the reply to that was lost, and then the message is dropped when it comes.
func (p *Positions) Middleware(h message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		ctx := msg.Context() // as it is before the handler, whose middlewares may end theirs
		id, number, err := eventOf(msg)
		if err != nil {
			return nil, err
		}
		if err := inOrder(msg); err != nil {
			return nil, fmt.Errorf("event %d of %s: %w", number, id, err)
		}
		done, err := p.turns.take(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("wait for earlier events of %s: %w", id, err)
		}
		defer done()
		last, err := p.Last(ctx, id)
		if err != nil {
			return nil, err
		}
		if number <= last {
			return nil, nil
		}
		if number > last+1 && p.config.Gaps == RefuseGaps {
			return nil, &GapError{Aggregate: id, Number: number, Expected: last + 1}
		}
		produced, err := h(msg)
		if err != nil {
			return nil, err
		}
		if len(produced) > 0 {
			return nil, fmt.Errorf("event %d of %s: %w: publish in the handler, before it returns", number, id, ErrProduced)
		}
		return nil, p.advance(ctx, id, number)
	}
}

// Last is the number of the last event of an aggregate that was handled, 0 if none was. It is
// strongly consistent.
//
// Errors: as [Positions.Middleware], of DynamoDB.
func (p *Positions) Last(ctx context.Context, id aggregate.ID) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.RequestTimeout)
	defer cancel()
	out, err := p.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &p.config.Table, Key: itemKey(p.key(id)), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return 0, p.failed("read", id, err)
	}
	if out.Item == nil {
		return 0, nil
	}
	last, err := parse(out.Item[attrNumber])
	if err != nil {
		return 0, fmt.Errorf("%s of item %q in table %q: %w: correct it, or delete the item to begin with the first event",
			attrNumber, p.key(id), p.config.Table, err)
	}
	return last, nil
}

// Set says that the events of an aggregate up to a number count as handled, and those after it do
// not: to begin behind events that were never forwarded, to go on without one that is lost, or to
// handle some again. The message of an event that is being handled may move it on at the same time.
//
// Errors: as [Positions.Middleware], of DynamoDB, and [aggregate.InvalidIDError].
func (p *Positions) Set(ctx context.Context, id aggregate.ID, last uint64) error {
	if err := id.Validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.config.RequestTimeout)
	defer cancel()
	item := itemKey(p.key(id))
	item[attrNumber] = number(last)
	if _, err := p.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &p.config.Table, Item: item}); err != nil {
		return p.failed("set", id, err)
	}
	return nil
}

// advance never moves a position back. Where it is further on, or where a repeated call finds what
// an earlier one did whose reply was lost, there is nothing to do.
func (p *Positions) advance(ctx context.Context, id aggregate.ID, to uint64) error {
	ctx, cancel := context.WithTimeout(ctx, p.config.RequestTimeout)
	defer cancel()
	_, err := p.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &p.config.Table,
		Key:                       itemKey(p.key(id)),
		UpdateExpression:          aws.String("SET #number = :to"),
		ConditionExpression:       aws.String("attribute_not_exists(#number) OR #number < :to"),
		ExpressionAttributeNames:  map[string]string{"#number": attrNumber},
		ExpressionAttributeValues: map[string]types.AttributeValue{":to": number(to)},
	})
	var beyond *types.ConditionalCheckFailedException
	if err == nil || errors.As(err, &beyond) {
		return nil
	}
	return p.failed("move", id, err)
}

func (p *Positions) key(id aggregate.ID) string {
	return "position/" + p.config.Group + "/" + text(id)
}

func (p *Positions) failed(what string, id aggregate.ID, err error) error {
	return fmt.Errorf("%s position of group %s in %s: %w", what, p.config.Group, id, explain(err, p.config.Table))
}
