package storage

import (
	"slices"
	"time"
)

// Commands are the command ids of an aggregate that a load found in its commits and its snapshot.
// The packed layout uses them to detect repeated commands. They must not change after they are
// shared; [Commands.With] returns a longer list.
type Commands struct {
	// Version is the version of the aggregate up to which they are complete.
	Version uint64
	// Dated lists the commands in the order of their commits.
	Dated []DatedCommand
	// Guards means that earlier commands are stored in rows of their own.
	Guards bool
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
	i := slices.IndexFunc(c.Dated, func(d DatedCommand) bool { return d.ID == id })
	if i < 0 {
		return Command{}, false
	}
	return c.Dated[i].Command, true
}

// With returns the commands at a later version, including the ones executed meanwhile. Some of
// these may be known already, because commands without events do not change the version.
func (c *Commands) With(version uint64, executed ...DatedCommand) *Commands {
	longer := &Commands{Version: version, Dated: slices.Clip(c.Dated), Guards: c.Guards}
	for _, d := range executed {
		if _, known := c.Find(d.ID); !known {
			longer.Dated = append(longer.Dated, d)
		}
	}
	return longer
}

// Loaded is the result of a load apart from the state.
type Loaded struct {
	Version uint64
	// Commands are for the next commit, in layouts that need them.
	Commands *Commands
}
