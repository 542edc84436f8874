//go:build unix

package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"syscall"

	"github.com/millrace-dev/millrace/test/draw"
)

// disrupt disrupts members from now on, until disrupting is false.
func (k *keeper) disrupt() {
	k.later(k.config.Calm/2+draw.UpTo(k.random, k.config.Calm), func() error {
		if !k.disrupting {
			return nil
		}
		k.disrupt()
		return k.disruptOne()
	})
}

// disruptions are the disruptions with their relative frequency. They are dealt like cards, so that
// a short run has some of each.
var disruptions = []kind{kill, kill, kill, kill, kill, freeze, freeze, term, change, change}

// change adds a member to a group, or removes one.
const change kind = "change"

// disruptOne disrupts a random member of a random group, half of the time the member that has
// worked last.
func (k *keeper) disruptOne() error {
	if len(k.deck) == 0 {
		k.deck = slices.Clone(disruptions)
		k.random.Shuffle(len(k.deck), func(i, j int) { k.deck[i], k.deck[j] = k.deck[j], k.deck[i] })
	}
	what := k.deck[0]
	g := k.groups[k.random.IntN(len(k.groups))]
	victim, err := k.victim(g, what)
	if err != nil || victim == nil {
		return err // without a victim, the disruption stays in the deck for the next time
	}
	k.deck = k.deck[1:]
	switch {
	case what == kill:
		return k.kill(g, victim)
	case what == freeze:
		return k.freeze(g, victim)
	case what == term:
		k.seen["closes"]++
		return k.terminate(g, victim)
	case len(g.members) < k.config.Members && (len(g.members) == 1 || k.random.IntN(2) == 0):
		k.seen["joins"]++
		return k.start(g)
	default:
		k.seen["leaves"]++
		victim.leaves = len(g.members) > 1
		return k.terminate(g, victim)
	}
}

// victim chooses a member, or returns nil if there is none.
func (k *keeper) victim(g *group, what kind) (*process, error) {
	if err := g.lines.read(); err != nil {
		return nil, err
	}
	var able []*process
	for _, p := range g.members {
		// A member that is frozen or about to close can still be killed.
		if !p.killed && (what == kill || !p.frozen && !p.termed) {
			able = append(able, p)
		}
	}
	if len(able) == 0 {
		return nil, nil
	}
	busy := slices.IndexFunc(able, func(p *process) bool { return p.Name == g.lines.lastAtWork() })
	if busy >= 0 && k.random.IntN(2) == 0 {
		return able[busy], nil
	}
	return able[k.random.IntN(len(able))], nil
}

// kill ends a member at once.
func (k *keeper) kill(g *group, p *process) error {
	k.seen["kills"]++
	p.killed = true
	return cmp.Or(g.notes.write(entry{Kind: kill, Member: p.Name}), p.signal(syscall.SIGKILL))
}

// terminate asks a member to close.
func (k *keeper) terminate(g *group, p *process) error {
	p.termed = true
	k.later(closeWithin, func() error {
		select {
		case <-p.ended:
			return nil
		default:
		}
		k.findings = append(k.findings, Finding{Unruly, fmt.Sprintf(
			"member %s did not close within %v of SIGTERM: see %s", p.Name, closeWithin, p.output)})
		return k.kill(g, p)
	})
	return cmp.Or(g.notes.write(entry{Kind: term, Member: p.Name}), p.signal(syscall.SIGTERM))
}

// freeze stops a member for longer than its lease.
func (k *keeper) freeze(g *group, p *process) error {
	k.seen["freezes"]++
	p.frozen = true
	forGood := k.random.IntN(3) == 0
	k.later(k.config.Lease+draw.UpTo(k.random, k.config.Lease), func() error {
		if p.killed {
			return nil
		}
		if forGood {
			return k.kill(g, p)
		}
		p.frozen = false
		return cmp.Or(p.signal(syscall.SIGCONT), g.notes.write(entry{Kind: thaw, Member: p.Name}))
	})
	return cmp.Or(g.notes.write(entry{Kind: freeze, Member: p.Name}), p.signal(syscall.SIGSTOP))
}
