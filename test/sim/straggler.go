package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/test/draw"
)

// stragglers are the late requests of one life of a process that remove an entry of the list of
// aggregates that are behind. The sender of a straggler sees a cut connection and sends it again.
// The straggler arrives right after the same owner has listed the aggregate again, or later. It
// must not remove the newer entry.
type stragglers struct {
	random *rand.Rand
	chance float64       // probability that a removal is held back
	most   time.Duration // maximum delay
	// begun is called when a removal is held back, and arrived when it has arrived because its
	// aggregate was listed again.
	begun, arrived func(stream)

	mu   sync.Mutex
	over bool
	held map[string]*straggler // by key
}

type straggler struct {
	epoch  uint64
	arrive func()
	timer  *time.Timer
}

// holdBack keeps a request if it is a removal to hold back, and reports whether it has. It holds
// back one request of each entry at a time.
func (w *wire) holdBack(in any, request *http.Request) bool {
	d, ok := in.(*dynamodb.DeleteItemInput)
	h := w.stragglers
	if !ok || h == nil || requestOf(in) != listRequests {
		return false
	}
	key := keyOf(d.Key)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || h.held[key] != nil || h.random.Float64() >= h.chance {
		return false
	}
	w.oracle.note("hold back", w.member.name)
	h.begun(listedOf(d.Key))
	h.held[key] = &straggler{
		epoch:  number(d.ExpressionAttributeValues[valueEpoch]),
		arrive: w.copyOf(request),
		timer:  time.AfterFunc(h.most, func() { h.release(key, 0) }),
	}
	return true
}

// noteListed lets the straggler of an aggregate arrive when the owner has just listed the aggregate
// again.
func (w *wire) noteListed(in any) {
	u, ok := in.(*dynamodb.UpdateItemInput)
	h := w.stragglers
	if !ok || h == nil || requestOf(in) != listRequests {
		return
	}
	if h.release(keyOf(u.Key), number(u.ExpressionAttributeValues[valueEpoch])) {
		w.oracle.note("straggler", w.member.name)
		h.arrived(listedOf(u.Key))
	}
}

// release lets a straggler of the given epoch arrive, or of any epoch if that is 0.
func (h *stragglers) release(key string, epoch uint64) bool {
	h.mu.Lock()
	s := h.held[key]
	if s == nil || epoch != 0 && s.epoch != epoch {
		h.mu.Unlock()
		return false
	}
	delete(h.held, key)
	h.mu.Unlock()
	s.timer.Stop()
	s.arrive()
	return true
}

// end lets all stragglers arrive, and holds back no more.
func (h *stragglers) end() {
	if h == nil {
		return
	}
	h.mu.Lock()
	h.over = true
	keys := slices.Sorted(maps.Keys(h.held))
	h.mu.Unlock()
	for _, key := range keys {
		h.release(key, 0)
	}
}

func keyOf(key map[string]types.AttributeValue) string {
	return text(key["pkey"]) + " " + text(key["skey"])
}

// listedOf returns the aggregate of an entry, and the group that has listed it.
func listedOf(key map[string]types.AttributeValue) stream {
	partition := text(key["pkey"])
	return stream{groupOf(partition), topicOf(partition), text(key["skey"])[len(behindPrefix):]}
}

// strike makes the owner of an aggregate list it again after its removal was held back: its
// handlers fail until the end of the storm, and one more event is written.
func (l *life) strike(ctx context.Context, s stream) {
	w := l.process.world
	if l.process.group.failures.policy != blocks || isImported(s.id) {
		return
	}
	n := w.struck.Add(1)
	if n > int64(w.plan.disruption.strikes) {
		return
	}
	w.stricken.Store(s, true)
	w.oracle.note("strike", s.String())
	striker := &writer{world: w, name: fmt.Sprint("striker ", n), random: draw.Derive(w.disturbance), version: map[aggregate.ID]uint64{}}
	pauseFor(ctx, time.Second) // the removal is sent again
	striker.commitTo(ctx, w.journal, aggregate.ID{Type: s.topic, Value: s.id})
}

// abandon crashes the owner of a stricken aggregate when it has stored a cursor beyond it. Then
// only the entry leads to the aggregate.
func (l *life) abandon(ctx context.Context, s stream) {
	p, w := l.process, l.process.world
	if !w.isStricken(s) {
		return
	}
	pauseFor(ctx, w.plan.trailing+strikeDelay)
	if ctx.Err() == nil && p.life == l && !w.isCalm() {
		w.oracle.note("crash", l.member.name)
		w.oracle.count("crash after a straggler", 1)
		p.life = nil
		l.kill()
	}
}

// strikeDelay is longer than storing a cursor takes, with some faults.
const strikeDelay = 10 * time.Second

// isStricken reports whether an aggregate was struck in a group: its handlers fail, and its owner
// will crash.
func (w *world) isStricken(s stream) bool {
	_, is := w.stricken.Load(s)
	return is && !w.isCalm()
}

// isDeserted reports whether writers ignore an aggregate because it was struck in some group: a
// later event would lead the next owner to it.
func (w *world) isDeserted(topic, id string) bool {
	for _, g := range w.plan.groups {
		if w.isStricken(stream{g.name, topic, id}) {
			return true
		}
	}
	return false
}
