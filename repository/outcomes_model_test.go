package repository_test

import (
	"slices"

	"github.com/millrace-dev/millrace/journal"
)

// The reasons for which a call ends.
const (
	endWritten      = "the commit is written"
	endUnchanged    = "there is nothing to write"
	endRepeated     = "the command was executed before"
	endMismatch     = "another command with the id was executed before"
	endRefused      = "the decision refuses"
	endConflict     = "another version is expected"
	endAttempts     = "other writers were faster in all attempts"
	endDeleted      = "the aggregate was deleted"
	endUnknown      = "the outcome stays unknown"
	endThrottled    = "the store throttles"
	endDenied       = "the store denies access"
	endWriteRefused = "the store refuses a write of the caller"

	nextAttempt = "" // the decision was made on a version that is not the stored one
	nextRun     = "the outcome was unknown, and the command was not executed"
)

// The amount of an event says who wrote it. So a balance and a version show the whole history.
const (
	othersAmount = 1
	ownAmount    = 10 // of the command, also if another process executes it
)

// model is the specification of Execute, and of a Transaction with one participant. It knows
// versions, and makes no requests.
type model struct {
	cell
	history  []int // the amounts of the stored events
	gone     bool  // the aggregate was deleted
	known    int   // the version after the command, or -1 if it was not executed
	own      bool  // the last decision of this call made the commit of the command
	kept     int   // the version in the cache, or -1
	expected int   // the version that the call expects, or -1

	seen     []int // the versions on which the decision runs
	sent     bool  // a commit was sent
	struck   bool  // the incident happened
	compared bool  // a read in a transaction has shown that a loaded version is the last one
	read     int   // the version that the call has read last
	asRead   bool  // the aggregate of a repeated command is the one that was read before
}

// Execute and a Transaction with one participant differ in these ways. A participant also has its
// ID after an error.

// decidesTwice reports whether a decision on the cached state, which writes nothing, and the
// decision on the stored state are one attempt. A Transaction reads several aggregates. It begins
// again after each change, and counts that as an attempt.
func (c cell) decidesTwice() bool { return c.call == byExecute }

// asksFirst reports whether a call looks for its command before it compares the version. If it
// finds the command, it returns the aggregate that it has read. The comparison of a Transaction is
// about all participants together, so it comes first. A Transaction reads the aggregates of a
// repeated command again.
func (c cell) asksFirst() bool { return c.call == byExecute }

// hasCommands reports whether a state holds the ids of the commands that led to it. The guard of a
// command for several aggregates belongs to none of them.
func (c cell) hasCommands() bool { return c.call == byExecute && c.layout == journal.Packed }

// goesOn reports whether the call reads only new commits after a decision, and searches them for
// its command. It can do that if a layout has the commits under their numbers.
func (c cell) goesOn() bool {
	return c.call == byExecute && c.layout == journal.Packed && c.version == anyVersion
}

// begin returns what is stored and cached before the call.
func begin(c cell) *model {
	m := &model{cell: c, known: -1, kept: -1, expected: -1, gone: c.aggregate == wasDeleted}
	if c.aggregate != withoutEvents {
		m.history = []int{othersAmount}
	}
	if c.cache == cachedOld {
		m.kept = 1
	}
	switch {
	case c.isExecuted() && c.aggregate == withoutEvents: // its decision appended nothing
		m.known = 0
	case c.isExecuted():
		m.history = append(m.history, ownAmount)
		m.known = len(m.history)
	case c.cache == cachedOld && c.aggregate == withEvents:
		m.history = append(m.history, othersAmount)
	}
	if c.cache == cachedLast {
		m.kept = len(m.history)
	}
	switch c.version {
	case lastVersion:
		m.expected = len(m.history)
	case cachedVersion:
		m.expected = m.kept
	case otherVersion:
		m.expected = 9
	}
	return m
}

func (m *model) attempts() int {
	if m.incident == oneAttempt || m.incident == rivalOneAttempt {
		return 1
	}
	return 3
}

// run returns the reason for which the call ends. A decision runs on the cached version, and
// without one on the stored version. It runs again on the stored version if that is another one.
func (m *model) run() string {
	version, fromCache := m.kept, m.kept >= 0
	// The first read is eventually consistent, unless the call has further writes.
	old := fromCache || m.goesOn() && m.incident != writeRefused
	for attempt := 1; ; fromCache, old = false, false {
		if !fromCache {
			if end := m.load(); end != "" {
				return end
			}
			version = len(m.history)
		}
		m.read = version
		// The decision runs only on the version that the call expects.
		decided := m.expected < 0 || m.expected == version
		if decided {
			m.decide()
		}
		// A decision without events is recorded if the command has an id.
		sends := decided && (m.decision == appends || m.decision == nothing && m.command != withoutID)
		var end string
		if sends {
			end = m.commit()
		} else {
			end = m.compare(fromCache, old, decided)
		}
		switch {
		case end == nextRun:
			return m.run()
		case end != nextAttempt:
			return end
		case sends && m.expected >= 0:
			return m.unlessKnown(endConflict)
		case m.goesOn() && !sends && m.known >= 0:
			return m.repeated()
		case !sends && (fromCache || m.goesOn()) && m.decidesTwice():
		case attempt == m.attempts():
			return endAttempts
		default:
			attempt++
		}
	}
}

// load reads the stored version. An aggregate that was deleted takes no further command.
func (m *model) load() (end string) {
	switch {
	case m.incident == readsThrottled:
		m.struck = true
		return endThrottled
	case m.gone:
		return m.unlessKnown(endDeleted)
	case m.cache != notCached:
		m.kept = len(m.history)
	}
	return ""
}

// unlessKnown returns the reason for which a command was not executed, unless it was executed
// before.
func (m *model) unlessKnown(reason string) (end string) {
	switch {
	case m.command != withoutID && m.incident == readsThrottled:
		m.struck = true
		return endThrottled
	case m.known >= 0:
		return m.repeated()
	}
	return reason
}

// repeated returns the end of a call whose command id was used before.
func (m *model) repeated() (end string) {
	if m.command == reusedID || m.incident == rivalReusesID {
		return endMismatch
	}
	return endRepeated
}

// decide runs the decision. Other processes act meanwhile.
func (m *model) decide() {
	first := len(m.seen) == 0
	m.seen = append(m.seen, m.read)
	switch {
	case m.incident == rivalAlways || first && (m.incident == rivalOnce || m.incident == rivalOneAttempt):
		m.history = append(m.history, othersAmount)
	case first && m.incident == rivalDeletes:
		m.gone = true
	case first && (m.incident == rivalExecutes || m.incident == rivalReusesID):
		m.execute()
	default:
		return
	}
	m.struck = true
}

// execute appends the events of the command, and records its id.
func (m *model) execute() {
	if m.decision != nothing {
		m.history = append(m.history, ownAmount)
	}
	if m.command != withoutID {
		m.known = len(m.history)
	}
}

// commit sends the commit of a decision. The store compares the version, and looks for the command.
func (m *model) commit() (end string) {
	if m.hasCommands() && m.known >= 0 && m.read >= m.known {
		return m.duplicate() // nothing is sent
	}
	first := !m.sent
	m.sent = true
	valid := m.read == len(m.history) && !m.gone && m.known < 0
	switch {
	case m.incident == writesThrottled:
		m.struck = true
		return endThrottled
	case m.incident == writesDenied:
		m.struck = true
		return endDenied
	case first && slices.Contains(lostIncidents, m.incident):
		m.struck = true
		// The journal reads whether its commit was written, and finds it if the read succeeds.
		if m.incident != replyLost || !valid {
			return m.unknown(valid)
		}
	}
	switch {
	case m.known >= 0 && m.hasCommands():
		return m.unlessKnown(endRepeated) // it is in a commit that must be read
	case m.known >= 0:
		return m.duplicate()
	case m.gone:
		return m.unlessKnown(endDeleted)
	case !valid:
		return nextAttempt
	case m.incident == writeRefused:
		m.struck = true
		return endWriteRefused
	}
	m.execute()
	return endWritten
}

// duplicate returns the end of a call whose commit was refused because the command id was used
// before. The refusal names the earlier commit, so the comparison of the content reads nothing.
func (m *model) duplicate() (end string) {
	if end = m.repeated(); end == endMismatch {
		return end
	}
	return m.unlessKnown(end)
}

// unknown returns what follows from a commit with an unknown outcome. A command with an id is
// looked for, and executed again if it was not executed. Without an id the caller has to resolve
// the outcome.
func (m *model) unknown(valid bool) (end string) {
	if valid && m.incident != hiddenUnwritten {
		m.execute()
		m.own = true
	}
	switch {
	case m.command == withoutID || m.incident == unreadable:
		return endUnknown
	case m.own:
		return endWritten
	case m.known >= 0:
		return m.repeated()
	}
	return nextRun
}

// compare returns what follows from a decision that writes nothing. A decision on an old version
// counts only if that is the stored one. A refused command with an id is compared too, once.
func (m *model) compare(fromCache, old, decided bool) (end string) {
	reason := endUnchanged
	switch {
	case !decided:
		reason = endConflict
	case m.decision == refuses:
		reason = endRefused
	}
	if !fromCache && m.asksFirst() && !m.goesOn() && m.known >= 0 && reason != endUnchanged {
		m.asRead = m.known <= m.read
		return m.repeated()
	}
	once := reason == endRefused && m.command != withoutID && m.expected < 0 && !m.compared
	if old || once {
		m.compared = m.compared || !fromCache && !m.goesOn() || m.goesOn() && once && (!fromCache || m.read == len(m.history))
		switch {
		case m.incident == readsThrottled:
			m.struck = true
			return endThrottled
		case m.gone && old:
			return m.unlessKnown(endDeleted)
		case m.gone || m.read != len(m.history):
			return nextAttempt
		}
	}
	if reason == endUnchanged {
		return reason
	}
	return m.unlessKnown(reason)
}
