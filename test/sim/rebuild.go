package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
	"github.com/millrace-dev/millrace/test/draw"
)

// rebuiltGroup keeps a read model that is built again from time to time. The oracle does not follow
// it. At the end, no event may have had its effect twice.
const rebuiltGroup = "rebuilt"

// rebuilder builds the read model again: it waits until the group is idle, clears the read model,
// and resets the group, or removes it. Transactions of the members are late, so some arrive after
// that.
type rebuilder struct {
	world   *world
	random  *rand.Rand
	group   *groups.Group
	members []*life // two; each topic has shards for both
	born    int
	// rows reports that the rows of the read model are the positions of the group. generation is
	// the number of times that it was built again.
	rows       bool
	generation int
}

func (w *world) newRebuilder(ctx context.Context, random *rand.Rand) (*rebuilder, error) {
	j, err := w.open(ctx, w.clean, &clock{})
	if err != nil {
		return nil, err
	}
	rows := w.plan.sabotage.ofRows() || w.plan.sabotage == "" && random.IntN(2) == 0
	return &rebuilder{world: w, random: random, group: groups.Of(j, rebuiltGroup, w.plan.topics[0]), rows: rows}, nil
}

// run builds the read model a few times, and lets it catch up.
func (r *rebuilder) run(ctx context.Context, times int) {
	r.fill(ctx)
	for range times {
		if r.rows { // while the members still handle the history
			pauseFor(ctx, between(r.random, 100*time.Millisecond, 3*time.Second))
		} else {
			pauseFor(ctx, between(r.random, time.Second, 8*time.Second))
		}
		if (r.rows || r.random.IntN(3) == 0) && len(r.members) > 0 {
			r.world.oracle.note("crash", r.members[0].member.name)
			r.members[0].kill()
			r.members = r.members[1:]
			r.fill(ctx)
		}
		r.rebuild(ctx)
		r.fill(ctx)
	}
	pauseFor(ctx, longestLateness+10*time.Second)
	for _, l := range r.members {
		l.closeRebuilt()
	}
}

// fill starts members until there are two.
func (r *rebuilder) fill(ctx context.Context) {
	for len(r.members) < 2 && ctx.Err() == nil {
		l, err := r.start(ctx)
		if err != nil {
			pauseFor(ctx, time.Second)
			continue
		}
		r.members = append(r.members, l)
	}
}

// longestLateness is the maximum delay of a transaction of a member.
const longestLateness = 20 * time.Second

func (r *rebuilder) start(ctx context.Context) (*life, error) {
	w := r.world
	r.born++
	l := &life{member: &member{name: fmt.Sprintf("%s.%d", rebuiltGroup, r.born)}}
	l.wire = w.wire(l.member, draw.Derive(r.random))
	l.wire.untracked = true
	client := l.wire.client(w.db)
	if r.rows { // the client waits, so that it does not send the request again before it is killed
		l.wire.faults.Inject(l.wire.proxy, dynamotest.Congestion(100*time.Millisecond, longestLateness),
			dynamotest.On("UpdateItem"), dynamotest.Table(rowTable.Table.Name), dynamotest.Chance(0.3))
	} else {
		l.wire.faults.Inject(l.wire.proxy, dynamotest.LateBy(100*time.Millisecond, longestLateness),
			dynamotest.On("TransactWriteItems"), dynamotest.Chance(0.3))
	}
	err := l.openRebuilt(ctx, r, client)
	if err != nil {
		l.kill()
	}
	return l, err
}

func (l *life) openRebuilt(ctx context.Context, r *rebuilder, client *dynamodb.Client) (err error) {
	w := r.world
	l.endSagas = func() {}
	if l.journal, err = w.open(ctx, client, &clock{}); err != nil {
		return err
	}
	var positions subscriber.PositionStore
	if r.rows {
		rows, err := rowEffects(client, r.generation)
		if err != nil {
			return err
		}
		positions, l.apply = rows, rows.Handle
	} else {
		p, err := effects(client, rebuiltGroup, true)
		if err != nil {
			return err
		}
		l.apply = p.Handle
	}
	l.sub, err = subscriber.NewSubscriber(subscriber.Config{
		Positions: positions,
		Journal:   l.journal, ConsumerGroup: rebuiltGroup, CloseTimeout: time.Second,
		Timing: subscriber.Timing{
			LeaseDuration: 2 * time.Second, PollInterval: time.Second, MaxPollInterval: 2 * time.Second, TrailingDelay: w.plan.trailing,
		},
	}, nil)
	if err != nil {
		return err
	}
	messages, err := l.sub.Subscribe(context.Background(), w.plan.topics[0])
	if err != nil {
		return err
	}
	go func() {
		for msg := range messages {
			go l.project(msg)
		}
	}()
	return nil
}

func (l *life) project(msg *message.Message) {
	if l.apply(msg) != nil {
		msg.Nack()
	} else {
		msg.Ack()
	}
}

func (l *life) closeRebuilt() {
	_ = l.sub.Close()
	close(l.wire.dead)
}

// rebuild clears the read model once the group is idle, and resets or removes the group.
func (r *rebuilder) rebuild(ctx context.Context) {
	w, g := r.world, r.group
	if g.Pause(ctx) != nil {
		return // a fault
	}
	if waitIdle(ctx, g) == nil {
		switch {
		case r.rows:
			r.rebuildRows(ctx)
		case r.random.IntN(2) == 0:
			w.oracle.note("rebuild by a reset", rebuiltGroup)
			r.clear(ctx)
			r.insist(ctx, func() error { return r.reset(ctx) })
		default:
			w.oracle.note("rebuild by a removal", rebuiltGroup)
			for _, l := range r.members {
				l.closeRebuilt()
			}
			r.members = nil
			r.clear(ctx)
			r.insist(ctx, func() error { return r.removeGroup(ctx) })
		}
		if w.plan.sabotage == Prune {
			r.insist(ctx, func() error { return r.remove(ctx, checkpointTable, isOldRebuilt) })
		}
	}
	r.insist(ctx, func() error { return g.Resume(ctx) })
}

func (r *rebuilder) reset(ctx context.Context) error {
	return r.group.Reset(ctx, subscriber.Beginning(), nil)
}

func (r *rebuilder) removeGroup(ctx context.Context) error {
	return r.group.Remove(ctx, groups.RemoveOptions{Force: true})
}

// insist repeats an operation until it succeeds, or there is no group.
func (r *rebuilder) insist(ctx context.Context, operate func() error) {
	for ctx.Err() == nil {
		if err := operate(); err == nil || errors.Is(err, groups.ErrNoGroup) {
			return
		}
		pauseFor(ctx, time.Second)
	}
}

func (r *rebuilder) clear(ctx context.Context) {
	r.insist(ctx, func() error {
		return r.remove(ctx, effectsTable, func(row map[string]types.AttributeValue) bool { return isRebuilt(text(row["id"])) })
	})
}

func isRebuilt(key string) bool { return strings.HasPrefix(key, rebuiltGroup+"/") }

// isOldRebuilt reports whether a row is a position of the group.
func isOldRebuilt(row map[string]types.AttributeValue) bool {
	return isRebuilt(text(row["pkey"])) && strings.HasPrefix(text(row["skey"]), positionPrefix)
}

// remove deletes the rows of a table that a function selects.
func (r *rebuilder) remove(ctx context.Context, table string, selects func(map[string]types.AttributeValue) bool) error {
	var keys []map[string]types.AttributeValue
	err := scan(ctx, r.world.clean, table, func(row map[string]types.AttributeValue) {
		key := map[string]types.AttributeValue{}
		for _, name := range []string{"id", "pkey", "skey"} {
			if row[name] != nil {
				key[name] = row[name]
			}
		}
		if selects(row) {
			keys = append(keys, key)
		}
	})
	for _, key := range keys {
		if err == nil {
			_, err = r.world.clean.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: key})
		}
	}
	return err
}

// inspectRebuilt compares the read model with the events at the end: it may lack some, but no event
// may have had its effect twice.
func (w *world) inspectRebuilt(ctx context.Context, heads map[stream]uint64) error {
	return scan(ctx, w.clean, effectsTable, func(row map[string]types.AttributeValue) {
		id := text(row["id"])
		for s, head := range heads {
			if id != effectID(rebuiltGroup, s.topic, s.id) {
				continue
			}
			n, sum := allHappened(head)
			w.oracle.count("rebuilt effects", int(number(row["n"])))
			if number(row["n"]) > n || number(row["s"]) > sum {
				w.oracle.find(Effect, "%s has %d effects with the sum %d after it was built again, more than %d with %d", id, number(row["n"]), number(row["s"]), n, sum)
			}
		}
	})
}
