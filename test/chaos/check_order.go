package chaos

import (
	"fmt"
	"slices"
	"time"
)

// lossWindow is how long an ack may be unstored in a member that is not in trouble: many times its
// CommitInterval, and as long as a flush may take. Acks before that are not lost with the member.
const lossWindow = 5 * time.Second

// checkSkips finds deliveries of an event before the event before it was acked. The rule is exact.
// A member that delivers event n+1 has received the ack of n, or has read a position that a member
// stored after receiving it. A line is written before the ack is sent. If the effects are in a
// transaction, its end may have no line, so there the delivery of n counts.
func checkSkips(file string, lines []entry, transactional bool) (findings []Finding) {
	through := ack
	if transactional {
		through = deliver
	}
	passed := map[place]bool{}
	for i, e := range lines {
		if e.Kind == deliver && e.Number > 1 && !passed[place{e.Thing, e.Number - 1}] {
			findings = append(findings, Finding{Reordered, fmt.Sprintf(
				"%s:%d: member %s got event %d of %s before anybody had acked event %d", file, i+1, e.Member, e.Number, e.Thing, e.Number-1)})
		}
		if e.Kind == through {
			passed[place{e.Thing, e.Number}] = true
		}
	}
	return findings
}

// checkRepeats finds deliveries of events whose position must have been stored, and of events that
// another member was handling.
func checkRepeats(file string, lines []entry, lease time.Duration) (findings []Finding) {
	x := excusesOf(lines, lease)
	// The lines that ack, or that record committed effects.
	finished := map[place][]int{}
	open := map[place]map[string]int{}
	// The latest time so far. A member may be frozen between reading the clock and writing the
	// line.
	var now time.Time
	for i, e := range lines {
		if e.At.After(now) {
			now = e.At
		}
		at := place{e.Thing, e.Number}
		switch e.Kind {
		case ack, done:
			finished[at] = append(finished[at], i)
			delete(open[at], e.Member)
		case nack:
			delete(open[at], e.Member)
		case deliver:
			again := slices.IndexFunc(finished[at], func(s int) bool { return !x.repeat(lines, s, i, now) })
			if again >= 0 {
				s := finished[at][again]
				findings = append(findings, Finding{Reordered, fmt.Sprintf(
					"%s:%d: member %s got event %d of %s again, %v after the %q of %s at line %d, whose position must have been stored",
					file, i+1, e.Member, e.Number, e.Thing, e.At.Sub(lines[s].At).Round(time.Millisecond),
					lines[s].Kind, lines[s].Member, s+1)})
			}
			for _, first := range open[at] {
				if !x.together(lines, first, i, now) {
					findings = append(findings, Finding{Reordered, fmt.Sprintf(
						"%s:%d: member %s got event %d of %s while %s, since line %d, was handling it",
						file, i+1, e.Member, e.Number, e.Thing, lines[first].Member, first+1)})
				}
			}
			if open[at] == nil {
				open[at] = map[string]int{}
			}
			open[at][e.Member] = i
		}
	}
	return findings
}

// repeats counts the deliveries of events that were acked or committed before, with or without a
// reason.
func repeats(lines []entry) (n int) {
	finished := map[place]bool{}
	for _, e := range lines {
		switch at := (place{e.Thing, e.Number}); e.Kind {
		case ack, done:
			finished[at] = true
		case deliver:
			if finished[at] {
				n++
			}
		}
	}
	return n
}

// excuses holds the reasons for which an event may be delivered again.
type excuses struct {
	killed   map[string]int // the line, by member
	troubles []span
}

// span is a time in which a member may not have kept its lease, and may not have noticed.
type span struct {
	member   string
	from, to time.Time
}

func excusesOf(lines []entry, lease time.Duration) excuses {
	x := excuses{killed: map[string]int{}}
	frozen := map[string]time.Time{}
	thawed := func(member string, at time.Time) {
		if since, ok := frozen[member]; ok {
			delete(frozen, member)
			x.troubles = append(x.troubles, span{member, since, at.Add(lease)})
		}
	}
	for i, e := range lines {
		switch e.Kind {
		case kill:
			x.killed[e.Member] = i
			thawed(e.Member, e.At)
		case freeze:
			frozen[e.Member] = e.At
		case thaw:
			thawed(e.Member, e.At)
		case trouble:
			x.troubles = append(x.troubles, span{e.Member, e.At.Add(-e.Took), e.At.Add(lease)})
		}
	}
	for member, since := range frozen {
		x.troubles = append(x.troubles, span{member, since, lines[len(lines)-1].At})
	}
	return x
}

// repeat reports whether the delivery in one line, written by now, may follow the ack, or the
// commit of effects, in an earlier line.
func (x excuses) repeat(lines []entry, finished, again int, now time.Time) bool {
	first, second := lines[finished], lines[again]
	if x.inTrouble(second.Member, second.At, now) {
		// A member that is stalled or killed may still handle messages that it received before.
		return true
	}
	if first.Kind == done {
		// The position is stored together with the effects.
		return false
	}
	if at, ok := x.killed[first.Member]; ok && at < again && lines[at].At.Sub(first.At) < lossWindow {
		// The member was killed before it had stored the position.
		return true
	}
	// A member in trouble may be evicted by others, and may evict others.
	return x.inTrouble("", first.At, first.At.Add(lossWindow))
}

// together reports whether a delivery is allowed while another member has not acked or committed an
// earlier one.
func (x excuses) together(lines []entry, first, second int, now time.Time) bool {
	at, killed := x.killed[lines[first].Member]
	return killed && at < second || x.inTrouble("", lines[first].At, now)
}

// inTrouble reports whether a member was in trouble at some moment of a time. An empty name means
// any member.
func (x excuses) inTrouble(member string, from, to time.Time) bool {
	return slices.ContainsFunc(x.troubles, func(s span) bool {
		return (member == "" || s.member == member) && !s.from.After(to) && !s.to.Before(from)
	})
}
