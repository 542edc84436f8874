package repository_test

import (
	"fmt"
	"iter"
	"slices"

	"github.com/millrace-dev/millrace/journal"
)

// The dimensions of the table of outcomes. Each value is a part of the name of a cell.
const (
	byExecute     = "Execute"
	byTransaction = "a Transaction with one participant"

	withoutEvents = "no events"
	withEvents    = "events"
	wasDeleted    = "deleted"

	notCached  = "not cached"
	cachedLast = "cached"
	cachedOld  = "cached at an earlier version"

	withoutID     = "no command id"
	newCommand    = "new command"
	knownCommand  = "executed command"
	reusedID      = "id of an executed command with another content"
	anyVersion    = "any version"
	lastVersion   = "expects the last version"
	cachedVersion = "expects the cached version"
	otherVersion  = "expects a version that does not exist"

	appends = "appends"
	nothing = "appends nothing"
	refuses = "refuses"
)

// The incidents happen during the call.
const (
	calm            = "nothing happens"
	oneAttempt      = "one attempt is allowed"
	replyLost       = "the reply of the commit is lost"
	hiddenWritten   = "the reply of the commit and the next read are lost"
	hiddenUnwritten = "the request of the commit and the next read are lost"
	unreadable      = "the reply of the commit and all later reads are lost"
	rivalOnce       = "another writer commits during the first decision"
	rivalOneAttempt = "another writer commits during the only attempt"
	rivalAlways     = "another writer commits during each decision"
	rivalDeletes    = "another process deletes the aggregate"
	rivalExecutes   = "another process executes the command"
	rivalReusesID   = "another process executes another content with the command id"
	writesThrottled = "writes are throttled"
	writesDenied    = "writes are denied"
	writeRefused    = "a write of the caller is refused"
	readsThrottled  = "reads are throttled"
)

var (
	rivalIncidents  = []string{rivalOnce, rivalOneAttempt, rivalAlways, rivalDeletes, rivalExecutes, rivalReusesID}
	lostIncidents   = []string{replyLost, hiddenWritten, hiddenUnwritten, unreadable}
	commitIncidents = slices.Concat(lostIncidents, []string{writesThrottled, writesDenied, writeRefused})
	incidents       = slices.Concat([]string{calm, oneAttempt, readsThrottled}, rivalIncidents, commitIncidents)
)

// cell is one cell of the table.
type cell struct {
	call      string
	layout    journal.Layout
	incident  string
	aggregate string
	cache     string
	command   string
	version   string
	decision  string
}

func (c cell) String() string {
	return fmt.Sprintf("%s, %s, %s, %s, %s, %s, %s, %s",
		c.call, c.layout, c.incident, c.aggregate, c.cache, c.command, c.version, c.decision)
}

// everyCell yields all combinations of the other dimensions.
func everyCell(call string, layout journal.Layout, incident string) iter.Seq[cell] {
	return func(yield func(cell) bool) {
		for _, aggregate := range []string{withoutEvents, withEvents, wasDeleted} {
			for _, cache := range []string{notCached, cachedLast, cachedOld} {
				for _, command := range []string{withoutID, newCommand, knownCommand, reusedID} {
					for _, version := range []string{anyVersion, lastVersion, cachedVersion, otherVersion} {
						for _, decision := range []string{appends, nothing, refuses} {
							if !yield(cell{call, layout, incident, aggregate, cache, command, version, decision}) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// cellsOf yields the cells that are possible.
func cellsOf(call string, layout journal.Layout, incident string) iter.Seq[cell] {
	return func(yield func(cell) bool) {
		for c := range everyCell(call, layout, incident) {
			if c.impossible() == "" && !yield(c) {
				return
			}
		}
	}
}

// isExecuted reports whether a command with the id of the call was executed before it.
func (c cell) isExecuted() bool { return c.command == knownCommand || c.command == reusedID }

// impossible returns the rule by which a cell is not possible, or an empty string.
func (c cell) impossible() string {
	happens := func(incidents []string) bool { return slices.Contains(incidents, c.incident) }
	switch {
	case c.aggregate == withoutEvents && c.cache != notCached:
		return "the cache holds no aggregate without events"
	case c.aggregate == wasDeleted && c.cache == cachedLast:
		return "the cached version of a deleted aggregate is an earlier one"
	case c.version == cachedVersion && (c.cache != cachedOld || begin(c).kept == len(begin(c).history)):
		return "only an earlier version differs from the last one"
	case (c.incident == rivalExecutes || c.incident == rivalReusesID) && c.command != newCommand:
		return "only a new command can be executed by another process first"
	case happens(rivalIncidents) && c.aggregate == wasDeleted:
		return "a deleted aggregate does not change"
	case c.incident == rivalDeletes && c.aggregate == withoutEvents:
		return "an aggregate without events cannot be deleted"
	case c.incident == writeRefused && c.decision != appends:
		return "a commit without events has no writes of the caller"
	}
	m := begin(c)
	m.run()
	switch {
	case happens(rivalIncidents) && len(m.seen) == 0:
		return "other processes act during a decision"
	case happens(commitIncidents) && !m.sent:
		return "a call without a commit has no fault of a commit"
	}
	return ""
}
