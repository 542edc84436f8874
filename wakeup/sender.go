package wakeup

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
)

// Sender reports the commits of this process to other processes. It is safe for concurrent use.
type Sender struct {
	config Config
	logger watermill.LoggerAdapter
	stop   func() // stops watching the journal

	commits, messages, dropped, failures atomic.Uint64

	mu      sync.Mutex
	pending map[aggregate.ID]uint64
	sending bool          // a message is being published
	sent    chan struct{} // closed when nothing is pending or being published; nil if no one waits

	wanted  chan struct{} // receives a value when something is pending
	hurry   chan struct{} // receives a value when Flush waits
	start   sync.Once
	closing chan struct{}
	close   func()
	done    chan struct{}
}

// SenderStats counts what a [Sender] has done.
type SenderStats struct {
	Commits  uint64 // commits through the journal
	Messages uint64 // messages published
	Failures uint64 // failed calls of Publish
	// Dropped counts the aggregates that were not reported, because 10,000 others were waiting or
	// Publish failed.
	Dropped uint64
}

const (
	// maxPending is the number of aggregates that wait to be reported.
	maxPending = 10_000
	// failurePause is the pause after a failed Publish, and closeTimeout is the time that Close
	// waits for Publish.
	failurePause = time.Second
	closeTimeout = 5 * time.Second
)

// ErrCloseTimeout reports that Publish did not return within 5 seconds, so the last commits may not
// have been reported.
var ErrCloseTimeout = errors.New("wakeup: the publisher did not return in time")

// NewSender returns a sender that reports each commit through config.Journal from now on, until
// [Sender.Close]. It does not report commits through other Journals of the same tables. It starts
// nothing before the first commit. A nil logger logs nothing. Errors: [*ConfigError].
func NewSender(config Config, logger watermill.LoggerAdapter) (*Sender, error) {
	config.setDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	if config.Publisher == nil {
		return nil, &ConfigError{"Publisher", "is nil; pass the publisher that sends the wake-ups"}
	}
	if logger == nil {
		logger = watermill.NopLogger{}
	}
	s := &Sender{
		config: config, logger: logger, pending: map[aggregate.ID]uint64{},
		wanted: make(chan struct{}, 1), hurry: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
	}
	s.close = sync.OnceFunc(func() { close(s.closing) })
	s.stop = config.Journal.Internal().Watch("", s.note)
	return s, nil
}

// Stats returns what the sender has done so far.
func (s *Sender) Stats() SenderStats {
	return SenderStats{Commits: s.commits.Load(), Messages: s.messages.Load(), Failures: s.failures.Load(), Dropped: s.dropped.Load()}
}

// Flush waits until all commits before the call are reported or dropped, or until ctx ends. A
// program that may be stopped at any time, such as a function in AWS Lambda, calls it before it
// returns. Errors: the error of ctx.
func (s *Sender) Flush(ctx context.Context) error {
	s.mu.Lock()
	if len(s.pending) == 0 && !s.sending {
		s.mu.Unlock()
		return nil
	}
	if s.sent == nil {
		s.sent = make(chan struct{})
	}
	sent := s.sent
	s.mu.Unlock()
	signal(s.hurry)
	select {
	case <-sent:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close stops watching the journal, and reports the commits before. It does not close the
// publisher. Errors: [ErrCloseTimeout]; then the sender ends when Publish returns.
func (s *Sender) Close() error {
	s.stop()
	s.close()
	s.start.Do(func() { close(s.done) }) // there was no commit
	timeout := time.NewTimer(closeTimeout)
	defer timeout.Stop()
	select {
	case <-s.done:
		return nil
	case <-timeout.C:
		return ErrCloseTimeout
	}
}

// note records a commit. It runs in the goroutine of the committer, and never waits for Publish.
func (s *Sender) note(id aggregate.ID, version uint64) {
	s.commits.Add(1)
	s.start.Do(func() { go s.run() })
	s.mu.Lock()
	defer s.mu.Unlock()
	known, waits := s.pending[id]
	if !waits && len(s.pending) >= maxPending {
		s.dropped.Add(1)
		return
	}
	s.pending[id] = max(known, version)
	signal(s.wanted)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run sends until the sender is closed.
func (s *Sender) run() {
	defer close(s.done)
	for {
		select {
		case <-s.wanted:
		case <-s.closing:
			s.send()
			return
		}
		pause := s.config.Interval
		if !s.send() {
			pause = failurePause
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-s.hurry:
		case <-s.closing:
		}
		timer.Stop()
	}
}

// send publishes what is pending. It stops after a failure, and reports whether there was none.
func (s *Sender) send() (ok bool) {
	for {
		w, count := s.next()
		if count == 0 {
			return true
		}
		if err := s.publish(w); err != nil {
			s.dropped.Add(uint64(count)) //nolint:gosec // not negative
			if s.failures.Add(1)%failuresPerLog == 1 {
				s.logger.Error("Cannot publish wake-ups; other processes find the events when they poll", err, watermill.LogFields{"topic": s.config.Topic})
			}
			return false
		}
		s.messages.Add(1)
	}
}

// failuresPerLog is the number of failures for which one is logged. There is at most one a second.
const failuresPerLog = 60

// next takes what the next message reports. If nothing is left, it wakes the callers of Flush.
func (s *Sender) next() (w wakeup, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w = wakeup{Journal: s.config.Journal.Config().Tables.Journal}
	count = w.take(s.pending)
	s.sending = count > 0
	if !s.sending && s.sent != nil {
		close(s.sent)
		s.sent = nil
	}
	return w, count
}

func (s *Sender) publish(w wakeup) (err error) {
	payload, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return s.config.Publisher.Publish(s.config.Topic, message.NewMessage(watermill.NewUUID(), payload))
}
