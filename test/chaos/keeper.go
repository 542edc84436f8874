//go:build unix

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"
)

// keeper owns the member processes: it starts them, harms them, and starts others.
type keeper struct {
	config    Config
	accessKey string
	random    *rand.Rand
	groups    []*group
	exits     chan *process
	agenda    []appointment
	deck      []kind // what is dealt next
	names     int
	seen      map[string]int
	findings  []Finding
	wild      bool // members are harmed
	closing   bool // none is started
}

// group is a consumer group's processes that have not ended.
type group struct {
	name    string
	notes   *log
	lines   *reader
	members []*process
}

// appointment is what the keeper is going to do.
type appointment struct {
	at time.Time
	do func() error
}

// closeWithin is how long a member may take to close: longer than its handlers have for it, and its
// writes after that.
const closeWithin = time.Minute

func newKeeper(config Config, accessKey string) (*keeper, error) {
	k := &keeper{
		config: config, accessKey: accessKey, seen: map[string]int{},
		random: rand.New(rand.NewPCG(config.Seed, 1)), //nolint:gosec // a seed decides
		// Whoever ends does not wait for the keeper.
		exits: make(chan *process, 4*config.Members*len(config.Groups)),
	}
	for _, name := range config.Groups {
		notes, err := openLog(k.logOf(name), "parent")
		if err != nil {
			return nil, err
		}
		k.groups = append(k.groups, &group{name: name, notes: notes, lines: &reader{path: k.logOf(name)}})
	}
	return k, nil
}

func (k *keeper) logOf(group string) string { return filepath.Join(k.config.Dir, group+".log") }

// start adds a member to a group.
func (k *keeper) start(g *group) error {
	if k.closing {
		return nil
	}
	k.names++
	p, err := start(member{
		Name: fmt.Sprint("p", k.names), Group: g.name, Log: k.logOf(g.name), Endpoint: k.config.Endpoint, AccessKey: k.accessKey,
		Seed: k.random.Uint64(), Lease: k.config.Lease, Fault: k.config.Fault,
	}, k.config.Dir, k.exits)
	if err != nil {
		return err
	}
	g.members = append(g.members, p)
	return nil
}

// fill brings all groups to a number of members.
func (k *keeper) fill(members int) error {
	for _, g := range k.groups {
		for len(g.members) < members {
			if err := k.start(g); err != nil {
				return err
			}
		}
	}
	return nil
}

// mind looks after the members until it is finished. It asks whenever something has happened, and
// when wake is closed.
func (k *keeper) mind(ctx context.Context, wake <-chan struct{}, finished func() bool) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !finished() {
		timer.Reset(k.next())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wake:
		case p := <-k.exits:
			k.bury(p)
		case <-timer.C:
			if err := k.due(); err != nil {
				return err
			}
		}
	}
	return nil
}

// mindUntil looks after the members until a channel is closed.
func (k *keeper) mindUntil(ctx context.Context, over <-chan struct{}) error {
	return k.mind(ctx, over, func() bool {
		select {
		case <-over:
			return true
		default:
			return false
		}
	})
}

func (k *keeper) later(d time.Duration, do func() error) {
	k.agenda = append(k.agenda, appointment{time.Now().Add(d), do})
}

// next is how long the first appointment is away.
func (k *keeper) next() time.Duration {
	if len(k.agenda) == 0 {
		return time.Hour
	}
	return max(0, time.Until(slices.MinFunc(k.agenda, func(a, b appointment) int { return a.at.Compare(b.at) }).at))
}

// due keeps the appointments whose time has come.
func (k *keeper) due() error {
	now := time.Now()
	var due []appointment
	k.agenda = slices.DeleteFunc(k.agenda, func(a appointment) bool {
		if a.at.After(now) {
			return false
		}
		due = append(due, a)
		return true
	})
	slices.SortStableFunc(due, func(a, b appointment) int { return a.at.Compare(b.at) })
	for _, a := range due {
		if err := a.do(); err != nil {
			return err
		}
	}
	return nil
}

// bury takes leave of a process that has ended, and has another one come in its place.
func (k *keeper) bury(p *process) {
	if complaint := p.complaint(); complaint != "" {
		k.findings = append(k.findings, Finding{Unruly, complaint})
	}
	for _, g := range k.groups {
		before := len(g.members)
		g.members = slices.DeleteFunc(g.members, func(other *process) bool { return other == p })
		if len(g.members) < before && !p.leaves {
			k.later(k.upTo(k.config.Calm), func() error { return k.start(g) })
		}
	}
}

// closeAll asks all members to close, and waits until they have.
func (k *keeper) closeAll(ctx context.Context) error {
	k.closing = true
	defer func() { k.closing = false }()
	for _, g := range k.groups {
		for _, p := range g.members {
			if p.termed || p.killed {
				continue
			}
			if err := k.terminate(g, p); err != nil {
				return err
			}
		}
	}
	return k.mind(ctx, nil, func() bool {
		return !slices.ContainsFunc(k.groups, func(g *group) bool { return len(g.members) > 0 })
	})
}

// end leaves no process behind, whatever happened.
func (k *keeper) end() {
	for _, g := range k.groups {
		for _, p := range g.members {
			_ = p.cmd.Process.Kill() // fails only when it has ended
			<-p.ended
		}
		_ = g.notes.close()
	}
}
