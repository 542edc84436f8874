package storage

import (
	"slices"
	"sync"
	"time"
)

// Commands are the command ids of an aggregate that a load found in its commits and its snapshot.
// The packed layout uses them to detect repeated commands. They must not change after they are
// shared; [Commands.With] returns a longer list.
type Commands struct {
	// Version is the version of the aggregate up to which they are complete.
	Version uint64
	// Guards means that earlier commands are stored in rows of their own.
	Guards bool
	// The first n commands of the list are known. A longer list shares them.
	list *commandList
	n    int
}

// commandList is a list of commands that only grows, at its end.
type commandList struct {
	mu    sync.RWMutex
	dated []DatedCommand
	at    map[string]int // place of each id
}

// DatedCommand is a command with the time of its commit.
type DatedCommand struct {
	Command
	At time.Time
	// Keep is how long its id is kept after that time; 0 for forever. The program that commits the
	// command decides.
	Keep time.Duration
}

// IsKept reports whether the time for which the id is kept has not ended yet.
func (d DatedCommand) IsKept(now time.Time) bool {
	return d.Keep == 0 || d.At.Add(d.Keep).After(now)
}

// Find returns the command with an id, and whether there is one.
func (c *Commands) Find(id string) (Command, bool) {
	if c.list == nil {
		return Command{}, false
	}
	c.list.mu.RLock()
	defer c.list.mu.RUnlock()
	if i, there := c.list.at[id]; there && i < c.n {
		return c.list.dated[i].Command, true
	}
	return Command{}, false
}

// Dated returns the commands in the order of their commits. The caller must not change them.
func (c *Commands) Dated() []DatedCommand {
	if c.list == nil {
		return nil
	}
	c.list.mu.RLock()
	defer c.list.mu.RUnlock()
	return slices.Clip(c.list.dated[:c.n])
}

// Add adds a command, unless its id is known. It is for commands that are not shared yet.
func (c *Commands) Add(d DatedCommand) {
	if _, known := c.Find(d.ID); known {
		return
	}
	if c.list == nil || !c.list.grow(c.n, d) {
		own := &commandList{at: map[string]int{}}
		for i, d := range append(c.Dated(), d) {
			own.grow(i, d)
		}
		c.list = own
	}
	c.n++
}

// grow adds a command after the first n. It returns false if there is another one in that place.
func (l *commandList) grow(n int, d DatedCommand) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.dated) != n {
		return false
	}
	l.dated, l.at[d.ID] = append(l.dated, d), n
	return true
}

// With returns the commands at a later version, including the ones executed meanwhile. Some of
// these may be known already, because commands without events do not change the version.
func (c *Commands) With(version uint64, executed ...DatedCommand) *Commands {
	longer := *c
	longer.Version = version
	for _, d := range executed {
		longer.Add(d)
	}
	return &longer
}

// Loaded is the result of a load apart from the state.
type Loaded struct {
	Version uint64
	// Commands are for the next commit, in layouts that need them.
	Commands *Commands
	Worth    Worth
}

// Worth holds what a load has read. It decides whether a snapshot pays.
type Worth struct {
	// Commits, Bytes and Units are the number of the commits that the load has replayed, their
	// size, and the read units that they cost. In the classic layout Commits is the number of
	// events.
	Commits, Bytes int
	Units          float64
	Head           HeadSize // in the classic layout
}

// HeadSize is the size of a head in bytes, and of the state in it. Both are 0 if they are not
// known.
type HeadSize struct{ Item, State int }
