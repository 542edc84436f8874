package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// kind says what a line of a log is about.
type kind string

const (
	// Lines of members.
	up      kind = "up"      // it runs
	deliver kind = "deliver" // a message arrived
	ack     kind = "ack"     // the message is about to be acked
	nack    kind = "nack"    // the message is about to be nacked
	// The effects of the message's event are committed.
	done kind = "done"
	// For the time Took, until now, the member may have lost its lease.
	trouble kind = "trouble"
	closed  kind = "closed" // it closed normally

	// Lines of the parent. It writes each before it sends the signal, except thaw, which it writes
	// afterwards.
	kill   kind = "kill"
	freeze kind = "freeze"
	thaw   kind = "thaw"
	term   kind = "term"
)

// entry is one line of a log.
type entry struct {
	At     time.Time
	Kind   kind
	Member string

	// Fields of deliver, ack, nack and done.
	Thing  string
	Number uint64
	Token  uint64

	// Field of trouble.
	Took time.Duration
}

// lineBytes is the length of every line. It divides the size of a page, so that no line crosses the
// end of a page. Only there can a killed process leave a write unfinished.
const lineBytes = 128

func (e entry) line() ([]byte, error) {
	thing := e.Thing
	if thing == "" {
		thing = "-"
	}
	b := fmt.Appendf(nil, "%d %s %s %s %d %x %d", e.At.UnixNano(), e.Kind, e.Member, thing, e.Number, e.Token, e.Took)
	if len(b) >= lineBytes {
		return nil, fmt.Errorf("a line of %d bytes, more than the maximum of %d: %q", len(b), lineBytes, b)
	}
	b = append(b, bytes.Repeat([]byte{' '}, lineBytes-1-len(b))...)
	return append(b, '\n'), nil
}

func parse(line []byte) (e entry, err error) {
	var at int64
	n, err := fmt.Sscanf(string(line), "%d %s %s %s %d %x %d", &at, &e.Kind, &e.Member, &e.Thing, &e.Number, &e.Token, &e.Took)
	if err != nil {
		return entry{}, fmt.Errorf("field %d: %w", n+1, err)
	}
	if e.Thing == "-" {
		e.Thing = ""
	}
	e.At = time.Unix(0, at)
	return e, nil
}

// log is a file to which processes append, for one member or the parent. It is safe for concurrent
// use.
type log struct {
	member string
	file   *os.File
}

func openLog(path, member string) (*log, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &log{member: member, file: file}, nil
}

// write appends a line. When it returns, the line is there even if the process is killed.
func (l *log) write(e entry) error {
	e.At = time.Now()
	if e.Member == "" {
		e.Member = l.member
	}
	line, err := e.line()
	if err != nil {
		return err
	}
	_, err = l.file.Write(line)
	return err
}

func (l *log) close() error { return l.file.Close() }

// reader follows a log.
type reader struct {
	path    string
	entries []entry
}

// read reads the new lines.
func (r *reader) read() error {
	file, err := os.Open(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // nothing was written yet
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	if _, err := file.Seek(int64(len(r.entries))*lineBytes, io.SeekStart); err != nil {
		return err
	}
	b, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	for ; len(b) >= lineBytes; b = b[lineBytes:] {
		e, err := parse(b[:lineBytes])
		if err != nil {
			return fmt.Errorf("%s:%d: %w", r.path, len(r.entries)+1, err)
		}
		r.entries = append(r.entries, e)
	}
	return nil
}

// lastAtWork returns the member with the last message.
func (r *reader) lastAtWork() string {
	for i := len(r.entries) - 1; i >= 0; i-- {
		if r.entries[i].Thing != "" {
			return r.entries[i].Member
		}
	}
	return ""
}
