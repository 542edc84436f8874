package sim

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/test/draw"
)

// live runs the lives of a process with trouble, until ctx ends. It leaves the process in its
// state, perhaps dead.
func (p *process) live(ctx context.Context) {
	t := p.world.plan.troubles
	// Members join one after the other, while events are written.
	pauseFor(ctx, draw.UpTo(p.random, t.every/4))
	for ctx.Err() == nil {
		if p.life == nil {
			if p.start(ctx, p.world.plan.disruption.has(Bursts) && !p.bursts) != nil {
				pauseFor(ctx, time.Second)
			}
			continue
		}
		l := p.life
		_ = l.wire.wait(ctx, exponential(p.random, t.every))
		switch {
		case p.life != l: // it has crashed meanwhile
			pauseFor(ctx, exponential(p.random, t.down))
		case ctx.Err() == nil:
			p.suffer(ctx, t)
		}
	}
}

// suffer makes one trouble happen.
func (p *process) suffer(ctx context.Context, t troubles) {
	w, l := p.world, p.life
	switch u := p.random.Float64() * t.sum; {
	case u < t.crash:
		w.oracle.note("crash", l.member.name)
		p.life = nil
		l.kill()
		pauseFor(ctx, exponential(p.random, t.down))
	case u < t.crash+t.stall:
		w.oracle.note("stall", l.member.name)
		d := draw.UpTo(p.random, t.stalls)
		l.wire.stall(d)
		pauseFor(ctx, d)
	case u < t.crash+t.stall+t.closes:
		w.oracle.note("close", l.member.name)
		p.life = nil
		l.close()
		pauseFor(ctx, exponential(p.random, t.down))
	default:
		topic := draw.Pick(p.random, w.plan.topics...)
		stolen, err := stealLease(ctx, w.clean, p.group.name, topic)
		if err == nil && stolen {
			w.oracle.robbed(p.group.name + "/" + topic)
			w.oracle.note("theft", p.group.name)
		}
	}
}

// forgetful removes stored positions from time to time, if that is the sabotage of the world.
func (w *world) forgetful(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		pauseFor(ctx, time.Second)
		s := stream{draw.Pick(r, w.plan.groups...).name, draw.Pick(r, w.plan.topics...), "a0"}
		if lost, err := losePosition(ctx, w.clean, s); err == nil && lost {
			w.oracle.note("forget", s.String())
		}
	}
}

func exponential(r *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(math.Min(5, r.ExpFloat64()) * float64(mean))
}
