package output

import (
	"fmt"
	"io"
	"time"
)

const (
	// A terminal shows progress in one line that changes. Otherwise each report is a line.
	terminalEvery = 100 * time.Millisecond
	lineEvery     = 5 * time.Second

	eraseLine = "\r\x1b[K"
)

// Progress shows the progress of a long operation. The zero value shows nothing. It is not safe for
// concurrent use.
type Progress struct {
	out      io.Writer
	terminal bool
	now      func() time.Time
	began    time.Time
	last     time.Time
}

// NewProgress returns the progress of an operation that begins now. On a terminal it is one line,
// which Done removes. Otherwise it is a line every 5 seconds.
func NewProgress(out io.Writer, terminal bool, now func() time.Time) *Progress {
	return &Progress{out: out, terminal: terminal, now: now, began: now()}
}

// Show shows the text that describe returns, unless the last text was shown too recently. elapsed
// is the time since the beginning.
func (p *Progress) Show(describe func(elapsed time.Duration) string) {
	if p.out == nil {
		return
	}
	now, every := p.now(), lineEvery
	if p.terminal {
		every = terminalEvery
	}
	if !p.last.IsZero() && now.Sub(p.last) < every {
		return
	}
	p.last = now
	text := describe(now.Sub(p.began))
	if p.terminal {
		_, _ = fmt.Fprint(p.out, eraseLine+text)
	} else {
		_, _ = fmt.Fprintln(p.out, text)
	}
}

// Done removes the line of progress from a terminal.
func (p *Progress) Done() {
	if p.out != nil && p.terminal && !p.last.IsZero() {
		_, _ = fmt.Fprint(p.out, eraseLine)
	}
}
