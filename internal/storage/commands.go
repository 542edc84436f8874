package storage

import (
	"slices"
	"time"
)

// Commands are the command ids of an aggregate, as far as a load has found them in its commits and
// its snapshot. The packed layout checks a command against them. They do not change once they are
// shared; [Commands.With] returns longer ones.
type Commands struct {
	// Version is that of the aggregate up to which they are complete.
	Version uint64
	// Dated are the commands, in the order of their commits.
	Dated []DatedCommand
	// Guards: earlier ones than these are in rows of their own.
	Guards bool
}

// DatedCommand is a command with the time of its commit.
type DatedCommand struct {
	Command
	At time.Time
}

// Find returns the command with an id.
func (c *Commands) Find(id string) (Command, bool) {
	i := slices.IndexFunc(c.Dated, func(d DatedCommand) bool { return d.ID == id })
	if i < 0 {
		return Command{}, false
	}
	return c.Dated[i].Command, true
}

// With returns the commands at a later version, with those that were executed on the way. Some of
// them may be known already: those without events do not move the version.
func (c *Commands) With(version uint64, executed ...DatedCommand) *Commands {
	longer := &Commands{Version: version, Dated: slices.Clip(c.Dated), Guards: c.Guards}
	for _, d := range executed {
		if _, known := c.Find(d.ID); !known {
			longer.Dated = append(longer.Dated, d)
		}
	}
	return longer
}

// Loaded is what a load has found besides the state.
type Loaded struct {
	Version uint64
	// Commands are for the next commit, in layouts that need them.
	Commands *Commands
}
