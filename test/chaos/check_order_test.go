package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const lease = time.Second

// at returns a line of an invented log, the given number of milliseconds after its start.
func at(ms int, k kind, member string, event ...uint64) entry {
	e := entry{At: time.UnixMilli(int64(1_000_000 + ms)), Kind: k, Member: member}
	if len(event) > 0 {
		e.Thing, e.Number, e.Token = "x", event[0], event[0]
	}
	return e
}

func took(e entry, d time.Duration) entry {
	e.Took = d
	return e
}

func TestAnEventIsSkippedIfTheOneBeforeWasNotAcked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lines []entry
		at    string // of the finding, if any
	}{
		"in order":       {[]entry{at(0, deliver, "a", 1), at(1, ack, "a", 1), at(2, deliver, "a", 2)}, ""},
		"by two members": {[]entry{at(0, deliver, "a", 1), at(1, ack, "a", 1), at(2, deliver, "b", 2)}, ""},
		"a zombie comes late, with what it had": {[]entry{
			at(0, deliver, "a", 1), at(1, ack, "a", 1), at(2, deliver, "a", 2), at(3, freeze, "a"), at(2000, deliver, "b", 2),
			at(2001, ack, "b", 2), at(2002, deliver, "b", 3), at(2003, ack, "b", 3), at(2004, thaw, "a"), at(2005, ack, "a", 2),
		}, ""},
		"begun in the middle":  {[]entry{at(0, deliver, "a", 2)}, "f:1"},
		"one is left out":      {[]entry{at(0, deliver, "a", 1), at(1, ack, "a", 1), at(2, deliver, "a", 3)}, "f:3"},
		"before the ack":       {[]entry{at(0, deliver, "a", 1), at(2, deliver, "a", 2), at(3, ack, "a", 1)}, "f:2"},
		"after a nack":         {[]entry{at(0, deliver, "a", 1), at(1, nack, "a", 1), at(2, deliver, "b", 2)}, "f:3"},
		"after a kill, no ack": {[]entry{at(0, deliver, "a", 1), at(1, kill, "a"), at(2, deliver, "b", 2)}, "f:3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assertFound(t, test.at, checkSkips("f", test.lines, false))
		})
	}
}

func TestEffectsCanBeCommittedByAMemberThatCouldNotNoteIt(t *testing.T) {
	t.Parallel()
	assert.Empty(t, checkSkips("f", []entry{at(0, deliver, "a", 1), at(1, kill, "a"), at(2, deliver, "b", 2)}, true))
	assertFound(t, "f:1", checkSkips("f", []entry{at(0, deliver, "a", 2)}, true))
}

func TestAnEventComesAgainOnlyForAReason(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lines []entry
		at    string // of the finding, if any
	}{
		"nacked": {[]entry{at(0, deliver, "a", 1), at(1, nack, "a", 1), at(2, deliver, "a", 1)}, ""},
		"killed soon after the ack": {[]entry{
			at(0, deliver, "a", 1), at(1, ack, "a", 1), at(100, kill, "a"), at(1200, deliver, "b", 1),
		}, ""},
		"killed long after the ack": {[]entry{
			at(0, deliver, "a", 1), at(1, ack, "a", 1), at(9000, kill, "a"), at(9900, deliver, "b", 1),
		}, "f:4"},
		"killed only later": {[]entry{
			at(0, deliver, "a", 1), at(1, ack, "a", 1), at(100, deliver, "b", 1), at(200, kill, "a"),
		}, "f:3"},
		"somebody else was killed": {[]entry{
			at(0, deliver, "a", 1), at(1, ack, "a", 1), at(100, kill, "c"), at(1200, deliver, "b", 1),
		}, "f:4"},
		"after an orderly end": {[]entry{
			at(0, deliver, "a", 1), at(1, ack, "a", 1), at(2, term, "a"), at(3, closed, "a"), at(200, deliver, "b", 1),
		}, "f:5"},
		"to the same member": {[]entry{at(0, deliver, "a", 1), at(1, ack, "a", 1), at(2, deliver, "a", 1)}, "f:3"},
		"frozen soon after the ack": {[]entry{
			at(0, deliver, "a", 1), at(1, ack, "a", 1), at(2, freeze, "a"), at(1300, deliver, "b", 1), at(2000, thaw, "a"),
		}, ""},
		"out of schedule, noted late": {[]entry{
			at(0, deliver, "a", 1), at(1, ack, "a", 1), at(1300, deliver, "b", 1), took(at(1600, trouble, "a"), 1500*time.Millisecond),
		}, ""},
		"frozen long after the ack": {[]entry{
			at(0, deliver, "a", 1), at(1, ack, "a", 1), at(7000, freeze, "a"), at(9000, deliver, "b", 1),
		}, "f:4"},
		"to a zombie": {[]entry{
			at(0, freeze, "z"), at(10_000, deliver, "a", 1), at(10_001, ack, "a", 1), at(20_000, thaw, "z"), at(20_001, deliver, "z", 1),
		}, ""},
		"to a zombie that looked at the clock before": {[]entry{
			at(10, freeze, "z"), at(1300, deliver, "a", 1), at(1301, ack, "a", 1), at(1400, thaw, "z"), at(9, deliver, "z", 1),
		}, ""},
		"to a zombie of long ago": {[]entry{
			at(0, freeze, "z"), at(2000, thaw, "z"), at(10_000, deliver, "a", 1), at(10_001, ack, "a", 1), at(20_001, deliver, "z", 1),
		}, "f:5"},
		"effects committed before a kill": {[]entry{
			at(0, deliver, "a", 1), at(1, done, "a", 1), at(2, kill, "a"), at(1200, deliver, "b", 1),
		}, "f:4"},
		"effects committed before a freeze": {[]entry{
			at(0, deliver, "a", 1), at(1, done, "a", 1), at(2, freeze, "a"), at(1300, deliver, "b", 1), at(2000, thaw, "a"),
		}, "f:4"},
		"effects committed, to a zombie": {[]entry{
			at(0, freeze, "z"), at(1300, deliver, "a", 1), at(1301, done, "a", 1), at(2000, thaw, "z"), at(2001, deliver, "z", 1),
		}, ""},
		"only the second of two acks is certain": {[]entry{
			at(0, deliver, "a", 1), at(1, ack, "a", 1), at(2, kill, "a"), at(1200, deliver, "b", 1), at(1201, ack, "b", 1),
			at(1300, deliver, "c", 1),
		}, "f:6"},
		"with two members at a time": {[]entry{at(0, deliver, "a", 1), at(1, deliver, "b", 1)}, "f:2"},
		"twice with one member":      {[]entry{at(0, deliver, "a", 1), at(1, deliver, "a", 1)}, "f:2"},
		"after the death of another": {[]entry{at(0, deliver, "a", 1), at(1, kill, "a"), at(1100, deliver, "b", 1)}, ""},
		"beside one that is frozen":  {[]entry{at(0, deliver, "a", 1), at(1, freeze, "a"), at(1100, deliver, "b", 1)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assertFound(t, test.at, checkRepeats("f", test.lines, lease))
		})
	}
}

// assertFound expects one finding at a line, or none.
func assertFound(t *testing.T, at string, findings []Finding) {
	t.Helper()
	if at == "" {
		assert.Empty(t, findings)
		return
	}
	if assert.Len(t, findings, 1) {
		assert.Equal(t, Reordered, findings[0].Kind)
		assert.Contains(t, findings[0].Text, at+": ")
	}
}
