package sim

import (
	"io"
	"strconv"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// trace is the list of all events of a world, in order, with one line for each. A world always
// writes it, so that reading it does not change the world.
type trace struct {
	start time.Time
	out   io.Writer
	line  []byte
	seen  map[string]int
}

// stream is an aggregate in a group.
type stream struct{ group, topic, id string }

func (s stream) String() string { return s.group + ":" + s.topic + "/" + s.id }

func streamOf(id aggregate.ID) stream { return stream{topic: id.Type, id: id.Value} }

func newTrace(out io.Writer) *trace {
	return &trace{start: time.Now(), out: out, seen: map[string]int{}}
}

func (t *trace) now() time.Duration { return time.Since(t.start) }

// note writes the time in microseconds, who, what, and the event.
func (t *trace) note(what, who string, s stream, number uint64) {
	t.seen[what]++
	line := t.begin(who)
	line = append(line, what...)
	if s.id != "" {
		line = append(line, ' ')
		line = append(line, s.group...)
		line = append(line, ':')
		line = append(line, s.topic...)
		line = append(line, '/')
		line = append(line, s.id...)
	}
	if number > 0 {
		line = append(line, " #"...)
		line = strconv.AppendUint(line, number, 10)
	}
	t.end(line)
}

// say writes a text of a process.
func (t *trace) say(who, text string) { t.end(append(t.begin(who), text...)) }

func (t *trace) begin(who string) []byte {
	line := strconv.AppendInt(t.line[:0], t.now().Microseconds(), 10)
	line = append(line, ' ')
	line = append(line, who...)
	return append(line, ' ')
}

func (t *trace) end(line []byte) {
	line = append(line, '\n')
	t.line = line            // for the next line
	_, _ = t.out.Write(line) // to memory, or to a host that accepts everything
}
