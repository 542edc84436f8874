package sim

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/test/campaign"
)

// oracle remembers the events of the world outside the database, and checks the rules.
type oracle struct {
	mu          sync.Mutex
	trace       *trace
	streams     map[stream]*history
	findings    []campaign.Finding
	handed      int             // number of messages
	acked       int             // number of acks, the first of each event
	tokens      map[string]bool // transactions that were executed
	memberships map[string]*owners
	filters     map[string]bool // groups that only want events of the type happened
	// Groups that handle runs of events. Only one message of a run is delivered.
	runs    map[string]bool
	resting map[stream]bool // groups and topics that are paused and idle
	// Groups and topics that an event has stopped, and since when.
	stopped  map[stream]time.Duration
	skips    map[string]bool // groups that skip events
	commands map[commandKey]arrived
	// commanded counts the commands of each saga. The saga takes the place of an aggregate.
	commanded map[stream]int
	// handled is the time at which the process managers of a group had handled an event.
	handled map[handledKey]time.Duration
	// acknowledged is the knowledge of writers about aggregates.
	acknowledged map[stream]*acknowledgement
	// removals are the removals of operators.
	removals map[stream]*removed
	// handOuts is the time of the first delivery of each event; nil if it is not recorded.
	handOuts map[stream]map[uint64]time.Duration
}

// mostFindings is the number of findings of a world that are kept. Later findings usually follow
// from the first ones.
const mostFindings = 20

func newOracle(t *trace) *oracle {
	return &oracle{trace: t, streams: map[stream]*history{}, tokens: map[string]bool{}, memberships: map[string]*owners{}, filters: map[string]bool{}, runs: map[string]bool{}, resting: map[stream]bool{}, stopped: map[stream]time.Duration{}, skips: map[string]bool{}, commands: map[commandKey]arrived{}, handled: map[handledKey]time.Duration{}, commanded: map[stream]int{}, removals: map[stream]*removed{}, acknowledged: map[stream]*acknowledgement{}}
}

func (o *oracle) find(kind campaign.Kind, format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finding(kind, format, args...)
}

func (o *oracle) finding(kind campaign.Kind, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	o.trace.say("oracle", "FINDS "+string(kind)+": "+text)
	if len(o.findings) < mostFindings {
		o.findings = append(o.findings, campaign.Finding{Kind: kind, At: o.trace.now(), Text: text})
	}
}

// note records an event of no stream.
func (o *oracle) note(what, who string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trace.note(what, who, stream{}, 0)
}

// count counts events that are too frequent for the trace.
func (o *oracle) count(what string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trace.seen[what] += n
}

// rest records that a group is paused and idle, or that this ends.
func (o *oracle) rest(group, topic string, resting bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if resting {
		o.trace.note("rest", group, stream{topic: topic}, 0)
	}
	o.resting[stream{group: group, topic: topic}] = resting
}

// committed records an acknowledged commit, with the number of its last event and the ids of all
// its events.
func (o *oracle) committed(who string, s stream, version uint64, ids []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trace.note("commit", who, s, version)
	o.acknowledge(s, version, ids)
}

// deliver records a message that a member delivers, before its handler.
func (o *oracle) deliver(ctx context.Context, m *member, s stream, number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.handed++
	o.trace.note("deliver", m.name, s, number)
	o.noteHandOut(s, number)
	h, a := o.of(m, s)
	if a.out > 0 && a.ctx.Err() == nil {
		o.finding(Reordered, "%s hands out %s #%d while #%d is with its handler", m.name, s, number, a.out)
	}
	a.out, a.ctx = number, ctx
	// A member continues at its own place until it notices a reset.
	if a.resets < h.resets {
		if o.trace.now() > max(h.reset, m.born)+m.notices {
			o.finding(Repeated, "%s hands out %s #%d, but the aggregate was reset at %v, and it has not read that", m.name, s, number, h.reset)
		}
		return
	}
	o.deliversSkipped(m, s, h, number)
	o.passes(m, s, h, a, number)
	since, stopped := o.stopped[stream{group: s.group, topic: s.topic}]
	before := max(h.position(), a.acked)
	switch {
	case o.resting[stream{group: s.group, topic: s.topic}]:
		o.finding(Restless, "%s hands out %s #%d, but the group is paused and was idle", m.name, s, number)
	case stopped && o.trace.now() > max(since, m.born)+m.notices:
		o.finding(Restless, "%s hands out %s #%d, but the group was stopped at %v", m.name, s, number, since)
	case !o.wants(s.group, number):
		o.finding(Unwanted, "%s hands out %s #%d, of a type that the group did not ask for", m.name, s, number)
	case number > o.next(s.group, h.acked):
		o.finding(Reordered, "%s hands out %s #%d, but only up to #%d has the group acked", m.name, s, number, h.acked)
	case number > o.next(s.group, before):
		o.finding(Reordered, "%s hands out %s #%d, but only up to #%d is stored, or acked by itself", m.name, s, number, before)
	case number <= a.knows:
		o.finding(Repeated, "%s hands out %s #%d, but it knows that #%d is stored", m.name, s, number, a.knows)
	default:
		// The member learns of positions of others later, when it learns that it does not own the
		// shard any more.
		from := sort.Search(len(h.stored), func(i int) bool { return h.stored[i].to >= number })
		for _, st := range h.stored[from:] {
			if st.by == m || !st.promised {
				continue
			}
			if since := max(st.at, m.born); o.trace.now() > since+m.notices || m.born > st.at {
				o.finding(Repeated, "%s hands out %s #%d, but %s has stored #%d at %v", m.name, s, number, st.by.name, st.to, st.at)
			}
			break
		}
	}
}

// wants reports whether a group wants events of that type.
func (o *oracle) wants(group string, number uint64) bool {
	return !o.filters[group] || hasHappened(number)
}

// next returns the first event after a number that a group wants. The events in between are done
// when the event before them is.
func (o *oracle) next(group string, after uint64) uint64 {
	next := after + 1
	for !o.wants(group, next) {
		next++
	}
	return next
}

// ack records an ack before the subscriber receives it. If the context of its message has ended,
// the ack does not count.
func (o *oracle) ack(ctx context.Context, m *member, s stream, number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trace.note("ack", m.name, s, number)
	h, a := o.of(m, s)
	a.answered(ctx)
	if ctx.Err() != nil || a.resets < h.resets {
		o.trace.seen["late ack"]++
		return
	}
	a.acked = max(a.acked, number)
	if number == o.next(s.group, h.acked) {
		o.done(h, number)
	}
}

func (o *oracle) done(h *history, number uint64) {
	o.acked += int(number - h.acked)
	h.acked = number
}

func (o *oracle) nack(ctx context.Context, m *member, s stream, number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trace.note("nack", m.name, s, number)
	_, a := o.of(m, s)
	a.answered(ctx)
}

// isRepeated records an executed transaction, and reports whether it was executed before.
func (o *oracle) isRepeated(token string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.tokens[token]
	o.tokens[token] = true
	return before
}

// store records a position that the database has stored just now. Flush says that the position was
// acked before, so that the member knows it even without the reply.
func (o *oracle) store(m *member, w positionWrite, flush bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, to := w.stream, w.to
	o.trace.note("store", m.name, s, to)
	h, a := o.of(m, s)
	if p := h.position(); to < p {
		o.finding(Moved, "%s moves the position of %s back from #%d to #%d", m.name, s, p, to)
	}
	if a.resets < h.resets && m.group != "" {
		o.finding(Moved, "%s moves the position of %s to #%d, but it has not read that the aggregate was reset", m.name, s, to)
	}
	switch next := o.next(s.group, h.acked); {
	case !flush && (to == next || to > next && o.runs[s.group]):
		// A transaction counts as an ack, because its effect is there.
		o.done(h, to)
	case to > h.acked && to < next:
		o.done(h, to) // events of a type that the group does not want
	case flush && m.group != "" && o.hasPassed(s, h.acked, to):
		o.trace.note("pass over", m.name, s, to)
		o.done(h, to)
	}
	if to > h.acked {
		o.finding(Moved, "%s moves the position of %s to #%d, but only up to #%d was acked", m.name, s, to, h.acked)
	}
	// A transaction with an effect is a promise under any epoch: its event must not come again.
	promised := !flush || o.isCurrent(w)
	if !promised {
		o.trace.note("store late", m.name, s, to)
	}
	o.withoutEffect(h, w)
	if to > h.position() {
		h.stored = append(h.stored, stored{to: to, by: m, promised: promised, at: o.trace.now()})
	}
	// A write of an earlier term of the member does not change its knowledge in the current term.
	if flush && a.resets == h.resets && (promised || !o.owns(m, w)) {
		a.knows = max(a.knows, to)
	}
}

// effect records a transaction with an effect of the event of a number, before its position.
func (o *oracle) effect(m *member, s stream, number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h, _ := o.of(m, s)
	if p := h.position(); number <= p {
		o.finding(Effect, "%s makes the effect of %s #%d, but #%d was stored together with its effect", m.name, s, number, p)
	}
}

// claim records a claim that the database has granted. It returns the position that the member will
// know from the reply. Later owners continue from a position that an owner of the shard has read.
func (o *oracle) claim(m *member, w positionWrite) (position uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h, _ := o.of(m, w.stream)
	o.trace.note("claim", m.name, w.stream, h.position())
	if o.isCurrent(w) {
		h.promise(o.trace.now())
	}
	return h.position()
}

// read records that the database has read a position for a member, strongly consistent. It returns
// the position that the member will know from the reply.
func (o *oracle) read(m *member, w positionWrite) (position uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h, _ := o.of(m, w.stream)
	o.trace.note("read", m.name, w.stream, h.position())
	if o.owns(m, w) {
		h.promise(o.trace.now())
	}
	return h.position()
}

// learn records that a member received a reply with a position that was stored after a number of
// resets.
func (o *oracle) learn(m *member, s stream, position uint64, resets int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, a := o.of(m, s)
	switch {
	case resets > a.resets:
		a.resets, a.knows, a.acked = resets, position, 0
	case resets == a.resets:
		a.knows = max(a.knows, position)
	}
}

// sendBack records that an operator has reset the group to a position on an aggregate. The later
// events are delivered again.
func (o *oracle) sendBack(m *member, w positionWrite) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trace.note("send back", m.name, w.stream, w.to)
	h, _ := o.of(m, w.stream)
	position := h.position()
	if w.to > position {
		o.finding(Moved, "%s resets %s to #%d, beyond #%d", m.name, w.stream, w.to, position)
		return
	}
	for number := w.to + 1; number <= position; number++ {
		if _, skipped := h.skipped[number]; hasHappened(number) && !skipped && !h.passed[number] {
			h.again[0], h.again[1] = h.again[0]+1, h.again[1]+number
		}
		delete(h.passed, number)
	}
	h.resets, h.reset = h.resets+1, o.trace.now()
	h.acked = w.to
	h.stored = slices.DeleteFunc(h.stored, func(st stored) bool { return st.to >= w.to })
	if w.to > 0 {
		h.stored = append(h.stored, stored{to: w.to, by: m, promised: true, at: o.trace.now()})
	}
}

// resetsOf returns the number of resets of a group on an aggregate.
func (o *oracle) resetsOf(s stream) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.streams[s]; h != nil {
		return h.resets
	}
	return 0
}

// positionOf returns the stored position of a stream, and whether it is known.
func (o *oracle) positionOf(s stream) (position uint64, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.streams[s]
	if h == nil {
		return 0, false
	}
	return h.position(), true
}

// againOf returns the number of events that had an effect before they were reset, and the sum of
// their numbers.
func (o *oracle) againOf(s stream) (n, sum uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.streams[s]; h != nil {
		return h.again[0], h.again[1]
	}
	return 0, 0
}

// pending returns the number of events that a group has not acked, without removed ones.
func (o *oracle) pending(group string, heads map[stream]uint64) (n uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for s, head := range heads {
		n += head - o.doneTo(stream{group, s.topic, s.id}, head)
	}
	return n
}

// progress returns the number of acks.
func (o *oracle) progress() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.acked
}

func (o *oracle) deliveries() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.handed
}

// complete reports whether no finding says that something is missing.
func (o *oracle) complete() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.findings) == 0
}
