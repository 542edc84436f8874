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

// Gaps says how [Positions] handles an event that is beyond the next one.
type Gaps int

const (
	// RefuseGaps refuses the message with a [*GapError], so that it is delivered again until the
	// events before it have been handled.
	RefuseGaps Gaps = iota
	// PassGaps handles the event, and drops earlier events that come later.
	PassGaps
)

// PositionsConfig configures [Positions]. Only Group is required.
type PositionsConfig struct {
	// Table is the name of the table. Default: [DefaultTable].
	Table string
	// Group names the handler to which the positions belong. Each handler of the same messages
	// needs its own group. All processes of a handler use the same group. Limit: 255 bytes, no
	// slash.
	Group string
	// Gaps says how an event beyond the next one is handled. Default: [RefuseGaps].
	Gaps Gaps
	// RequestTimeout limits each request, including the retries of the SDK. Other events of the
	// aggregate wait meanwhile, so it applies also if the context of a message ends later. Default:
	// 5 seconds.
	RequestTimeout time.Duration
}

// Positions stores, for each aggregate, the number of the last event that a group has handled. It
// is safe for concurrent use.
type Positions struct {
	client Client
	config PositionsConfig
	turns  turns
}

// NewPositions returns Positions for the handler config.Group. It makes no requests. [CreateTable]
// creates the table.
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

// Middleware returns a handler that calls h for events that were not handled before, and acks
// duplicates. It is a message.HandlerMiddleware. Put it outside of a poison queue and of
// middlewares that retry, so that events in the poison queue count as handled.
//
// h must not return messages. Messages of one aggregate are handled one after the other; a message
// that waits fails when its context ends.
//
// Errors: [ErrNoEvent], [ErrSplit], [ErrDeferred], [*GapError] and [ErrProduced]; the errors of h;
// [journal.ErrTableMissing], [journal.ErrThrottled], [journal.ErrAccess], and the errors of the
// context and the SDK. After an error the message must be delivered again. The position has not
// moved, unless the reply to its move was lost; then the message is acked as a duplicate.
func (p *Positions) Middleware(h message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		ctx := msg.Context() // inner middlewares may replace it by one that ends earlier
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

// Last returns the number of the last event of an aggregate that was handled, 0 if none was. It
// makes one strongly consistent read.
//
// Errors: [journal.ErrTableMissing], [journal.ErrThrottled], [journal.ErrAccess], and the errors of
// the context and the SDK.
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

// Set stores last as the position of an aggregate: events up to last count as handled, and later
// events do not. Use it to begin after events that were never forwarded, to skip a lost event, or
// to handle events again. An event that is being handled at the same time may move the position on.
//
// Errors: those of [Positions.Last], and [*aggregate.InvalidIDError].
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

// advance moves a position forward, never back. The condition fails if the position is already
// there: another process has moved it, or the SDK repeats a request whose reply was lost.
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
