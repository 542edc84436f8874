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

// handler is what a member does with messages.
type handler struct {
	notes *log
	fault Fault

	mu     sync.Mutex
	random *rand.Rand
}

var errOnPurpose = errors.New("nacked on purpose")

// How long a member with a fault is in the state in which a kill shows it. An ack must be stored in
// that time.
const (
	ackFirstWindow = 2 * commitInterval
	unfencedWindow = 100 * time.Millisecond
)

// plain notes what it gets, and acks.
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

// projecting returns a handler that projects, and notes what it has committed.
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
			// The message comes again, and its effects must not.
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

// unfenced commits the effects alone.
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

// received notes that a message came.
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

// blocked reports whether to nack a message. A few events are nacked for up to twice as long as it
// takes to be listed as behind: so members come and go while the cursor has passed what they have
// to deliver.
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

// blockedOneIn is how seldom an event is blocked.
const blockedOneIn = 100

// work takes a random while, and says whether to nack.
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
