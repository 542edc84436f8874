//go:build unix

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/test/draw"
)

// keeper owns the member processes: it starts them, disrupts them, and replaces them.
type keeper struct {
	config     Config
	accessKey  string
	random     *rand.Rand
	groups     []*group
	exits      chan *process
	agenda     []appointment
	deck       []kind // the next disruptions
	names      int
	seen       map[string]int
	findings   []Finding
	disrupting bool // members are disrupted
	closing    bool // no member is started
}

// group holds the processes of a consumer group that have not ended.
type group struct {
	name    string
	notes   *log
	lines   *reader
	members []*process
}

// appointment is a planned action of the keeper.
type appointment struct {
	at time.Time
	do func() error
}

// closeWithin is the maximum time for a member to close: longer than the time limit of its
// handlers, plus its writes after that.
const closeWithin = time.Minute

func newKeeper(config Config, accessKey string) (*keeper, error) {
	k := &keeper{
		config: config, accessKey: accessKey, seen: map[string]int{},
		random: draw.New(config.Seed, 1),
		// A process that ends does not wait for the keeper.
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

// fill starts members until all groups have the given number.
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

// supervise supervises the members until finished returns true. It calls finished after each event,
// and when wake is closed.
func (k *keeper) supervise(ctx context.Context, wake <-chan struct{}, finished func() bool) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !finished() {
		timer.Reset(k.next())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wake:
		case p := <-k.exits:
			k.replace(p)
		case <-timer.C:
			if err := k.due(); err != nil {
				return err
			}
		}
	}
	return nil
}

// superviseUntil supervises the members until a channel is closed.
func (k *keeper) superviseUntil(ctx context.Context, over <-chan struct{}) error {
	return k.supervise(ctx, over, func() bool {
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

// next returns the time until the first appointment.
func (k *keeper) next() time.Duration {
	if len(k.agenda) == 0 {
		return time.Hour
	}
	return max(0, time.Until(slices.MinFunc(k.agenda, func(a, b appointment) int { return a.at.Compare(b.at) }).at))
}

// due executes the appointments whose time has come.
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

// replace handles the end of a process, and starts another one in its place.
func (k *keeper) replace(p *process) {
	if complaint := p.complaint(); complaint != "" {
		k.findings = append(k.findings, Finding{Unruly, complaint})
	}
	for _, g := range k.groups {
		before := len(g.members)
		g.members = slices.DeleteFunc(g.members, func(other *process) bool { return other == p })
		if len(g.members) < before && !p.leaves {
			k.later(draw.UpTo(k.random, k.config.Calm), func() error { return k.start(g) })
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
	return k.supervise(ctx, nil, func() bool {
		return !slices.ContainsFunc(k.groups, func(g *group) bool { return len(g.members) > 0 })
	})
}

// end kills all processes.
func (k *keeper) end() {
	for _, g := range k.groups {
		for _, p := range g.members {
			_ = p.cmd.Process.Kill() // fails only if the process has ended
			<-p.ended
		}
		_ = g.notes.close()
	}
}
