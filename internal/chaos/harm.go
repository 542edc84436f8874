//go:build unix

package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// rage harms members from now on, until wild is false.
func (k *keeper) rage() {
	k.later(k.config.Calm/2+k.upTo(k.config.Calm), func() error {
		if !k.wild {
			return nil
		}
		k.rage()
		return k.harm()
	})
}

func (k *keeper) upTo(d time.Duration) time.Duration { return time.Duration(k.random.Int64N(int64(d))) }

// harm does something to a random group, half of the time to the member that has just been at work.
func (k *keeper) harm() error {
	g := k.groups[k.random.IntN(len(k.groups))]
	if err := g.lines.read(); err != nil {
		return err
	}
	chance := k.random.IntN(100)
	var victims []*process
	for _, p := range g.members {
		// Even one that is frozen or about to close can be killed.
		if !p.killed && (chance < 50 || !p.frozen && !p.termed) {
			victims = append(victims, p)
		}
	}
	if len(victims) == 0 {
		return nil
	}
	victim := victims[k.random.IntN(len(victims))]
	if busy := slices.IndexFunc(victims, func(p *process) bool { return p.Name == g.lines.lastAtWork() }); busy >= 0 && k.random.IntN(2) == 0 {
		victim = victims[busy]
	}
	switch {
	case chance < 50:
		return k.kill(g, victim)
	case chance < 65:
		return k.freeze(g, victim)
	case chance < 80:
		k.seen["closes"]++
		return k.terminate(g, victim)
	case len(g.members) < k.config.Members:
		k.seen["joins"]++
		return k.start(g)
	case len(g.members) > 1:
		k.seen["leaves"]++
		victim.leaves = true
		return k.terminate(g, victim)
	}
	return nil
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
	k.later(k.config.Lease+k.upTo(k.config.Lease), func() error {
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
