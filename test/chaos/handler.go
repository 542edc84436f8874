//go:build unix

package chaos

import (
	"context"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

// handler handles the messages of a member.
type handler struct {
	notes *log
	fault Fault

	mu     sync.Mutex
	random *rand.Rand
}

var errOnPurpose = errors.New("nacked on purpose")

// These are the times for which a member with a fault stays in the state in which a kill shows the
// fault. An ack must be stored within that time.
const (
	ackFirstWindow = 2 * commitInterval
	unfencedWindow = 100 * time.Millisecond
)

// plain records each message, and acks.
func (h *handler) plain(msg *message.Message) error {
	e, err := h.received(msg)
	if err != nil {
		return err
	}
	if h.fault == AckFirst {
		msg.Ack()
		time.Sleep(ackFirstWindow)
	}
	refuse := h.work() || blocked(msg)
	e.Kind = ack
	if refuse {
		e.Kind = nack
	}
	if err := h.notes.write(e); err != nil {
		return err
	}
	if refuse {
		return errOnPurpose
	}
	return nil
}

// projecting returns a handler that projects, and records the commit.
func (h *handler) projecting(client *dynamodb.Client) (message.NoPublishHandlerFunc, error) {
	p, err := projection.New(client, projection.Config{},
		projection.On(func(_ context.Context, e happened, r *journal.Record) (writes []projection.Write, err error) {
			for _, u := range effectsOf(e, r) {
				writes = append(writes, projection.Update(u))
			}
			return writes, nil
		}))
	if err != nil {
		return nil, err
	}
	commit := p.Handle
	if h.fault == Unfenced {
		commit = func(msg *message.Message) error { return unfenced(msg, client) }
	}
	return func(msg *message.Message) error {
		e, err := h.received(msg)
		if err != nil {
			return err
		}
		switch refuse := h.work(); {
		case blocked(msg):
			err = errOnPurpose
		case refuse:
			// The message is delivered again, but its effects must not be repeated.
			err = errors.Join(commit(msg), errOnPurpose)
		default:
			err = commit(msg)
		}
		e.Kind = done
		if err != nil {
			e.Kind = nack
		}
		return errors.Join(err, h.notes.write(e))
	}, nil
}

// unfenced commits only the effects.
func unfenced(msg *message.Message, client *dynamodb.Client) error {
	r, _ := subscriber.RecordFromContext(msg.Context())
	var e happened
	if err := aggregate.JSON.Unmarshal(r.Payload, &e); err != nil {
		return err
	}
	var items []types.TransactWriteItem
	for _, u := range effectsOf(e, r) {
		items = append(items, types.TransactWriteItem{Update: &u})
	}
	_, err := client.TransactWriteItems(msg.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: items})
	time.Sleep(unfencedWindow)
	return err
}

// received records that a message arrived.
func (h *handler) received(msg *message.Message) (entry, error) {
	r, ok := subscriber.RecordFromContext(msg.Context())
	if !ok {
		return entry{}, errors.New("a message without a record")
	}
	var event happened
	if err := aggregate.JSON.Unmarshal(r.Payload, &event); err != nil {
		return entry{}, err
	}
	e := entry{Kind: deliver, Thing: r.Aggregate.Value, Number: r.Number, Token: event.Token}
	return e, h.notes.write(e)
}

// blocked reports whether to nack a message. A few events are nacked for up to twice the time after
// which they are listed as behind. So members join and leave while the cursor has passed events
// that are not handled yet.
func blocked(msg *message.Message) bool {
	r, ok := subscriber.RecordFromContext(msg.Context())
	if !ok {
		return true
	}
	chance := crc32.ChecksumIEEE([]byte(r.EventID))
	if chance%blockedOneIn != 0 {
		return false
	}
	seconds := chance / blockedOneIn % uint32(2*behindAfter/time.Second)
	return time.Since(r.OccurredAt) < time.Duration(seconds)*time.Second
}

// blockedOneIn says that one in this many events is blocked.
const blockedOneIn = 100

// work takes a random time, and reports whether to nack.
func (h *handler) work() (refuse bool) {
	h.mu.Lock()
	chance := h.random.IntN(100)
	pause := time.Duration(h.random.Int64N(int64(10 * time.Millisecond)))
	h.mu.Unlock()
	if chance == 0 {
		pause *= 20
	}
	time.Sleep(pause)
	return chance >= 97
}
