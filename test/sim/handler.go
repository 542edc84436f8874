package sim

import (
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/test/draw"
)

const effectsTable = "effects"

// effects returns a projection with one row for each stream. The row holds the count of the events
// of type happened, and the sum of their numbers. It handles single events, or runs of them.
func effects(client projection.Client, group string, runs bool) (*projection.Projection, error) {
	config := projection.Config{RetryBudget: time.Second}
	if runs {
		return projection.NewBatch(client, config,
			func(_ context.Context, sum [2]uint64, run projection.Run) ([]projection.Write, error) {
				return []projection.Write{effect(group, run.Aggregate, sum[0], sum[1])}, nil
			},
			projection.Fold(func(sum *[2]uint64, _ happened, r *journal.Record) error {
				sum[0], sum[1] = sum[0]+1, sum[1]+r.Number
				return nil
			}))
	}
	return projection.New(client, config, projection.On(func(_ context.Context, _ happened, r *journal.Record) ([]projection.Write, error) {
		return []projection.Write{effect(group, r.Aggregate, 1, r.Number)}, nil
	}))
}

func effect(group string, id aggregate.ID, n, sum uint64) projection.Write {
	return projection.Update(types.Update{
		TableName:                 aws.String(effectsTable),
		Key:                       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: effectID(group, id.Type, id.Value)}},
		UpdateExpression:          aws.String("ADD #n :n, #s :s"),
		ExpressionAttributeNames:  map[string]string{"#n": "n", "#s": "s"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": numberValue(n), ":s": numberValue(sum)},
	})
}

func effectID(group, topic, id string) string { return group + "/" + topic + "/" + id }

// consume passes the messages of a subscription to handlers, until the subscription ends or the
// process dies.
func (l *life) consume(messages <-chan *message.Message) {
	plan := l.process.group.handlers
	slots := make(chan struct{}, plan.workers)
	for {
		if l.wire.gate(context.Background()) != nil {
			return
		}
		select {
		case slots <- struct{}{}:
		case <-l.wire.dead:
			return
		}
		select {
		case msg, ok := <-messages:
			if !ok {
				return
			}
			l.receive(msg)
			go func() {
				defer func() { <-slots }()
				l.handle(msg)
			}()
		case <-l.wire.dead:
			return
		}
	}
}

// receive reports a message to the oracle.
func (l *life) receive(msg *message.Message) {
	id, number, ok := subscriber.AggregateFromContext(msg.Context())
	if !ok {
		l.process.world.oracle.find(Reordered, "%s hands out a message that carries no aggregate: %s", l.member.name, msg.UUID)
		return
	}
	l.process.world.oracle.deliver(msg.Context(), l.member, stream{l.member.group, id.Type, id.Value}, number)
}

// handle is a handler: it takes some time, and then acks or nacks, if its process is still alive.
func (l *life) handle(msg *message.Message) {
	w, plan := l.process.world, l.process.group.handlers
	id, number, _ := subscriber.AggregateFromContext(msg.Context())
	s := stream{l.member.group, id.Type, id.Value}
	draw := l.draw(plan)
	if w.plan.sabotage == Shuffle {
		msg.Ack()
	}
	if draw.skip {
		msg.Ack()
		return
	}
	if l.wire.wait(context.Background(), draw.work) != nil {
		return
	}
	if draw.hang > 0 {
		w.oracle.note("hang", l.member.name)
		_ = l.wire.wait(msg.Context(), draw.hang)
	}
	if l.wire.gate(context.Background()) != nil {
		return
	}
	failed := draw.nack
	poisoned := w.isPoisoned(l.process.group, s, number)
	if poisoned {
		w.oracle.count("poisoned", 1)
		failed = true
	}
	if w.isOut(l.process.group, s) {
		w.oracle.count("out", 1)
		// For a dependency that does not reply.
		_ = l.wire.wait(msg.Context(), 100*time.Millisecond)
		poisoned, failed = true, true
	}
	if l.effects != nil && !failed {
		failed = l.effects.Handle(msg) != nil
	}
	if l.sagas != nil && !poisoned {
		if l.sagas.Handle(msg) == nil {
			// The message may still be nacked and delivered again.
			w.oracle.handles(s, number)
		} else {
			failed = true
		}
	}
	switch {
	case l.wire.isDead():
	case failed:
		w.oracle.nack(msg.Context(), l.member, s, number)
		msg.Nack()
	default:
		w.oracle.ack(msg.Context(), l.member, s, number)
		msg.Ack()
	}
}

// handling holds the random choices for one message.
type handling struct {
	work, hang time.Duration
	nack, skip bool
}

func (l *life) draw(p handlerPlan) (h handling) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Not always, since waiting is the most expensive part here.
	if l.random.IntN(5) == 0 {
		h.work = draw.UpTo(l.random, 10*p.work)
	}
	if l.random.Float64() < p.slow {
		h.work *= time.Duration(l.random.IntN(100))
	}
	calm := l.calm
	h.nack = !calm && l.random.Float64() < p.nack
	if !calm && l.random.Float64() < p.hang {
		h.hang = draw.UpTo(l.random, p.hangs)
	}
	h.skip = l.process.world.plan.sabotage == Skip && l.random.Float64() < 0.005
	return h
}
