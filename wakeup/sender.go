package wakeup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	sending int // the number of aggregates of the current pass
	// pass is closed when what is being sent, and what was pending when it began, is sent or
	// dropped. It is nil while nothing runs. next is the pass that follows.
	pass, next chan struct{}

	hurry   chan struct{} // receives a value when Flush waits
	closing chan struct{}
	close   func()
}

// SenderStats counts what a [Sender] has done.
type SenderStats struct {
	Commits  uint64 // commits through the journal
	Messages uint64 // messages published
	Failures uint64 // failed calls of Publish
	// Dropped counts the aggregates that were not reported, because 10,000 others were waiting, or
	// because Publish failed for them or for an earlier message of the same round.
	Dropped uint64
}

const (
	// maxPending is the number of aggregates that wait to be reported.
	maxPending = 10_000
	// failurePause is the pause after a failed Publish, and flushTimeout is the time that Flush and
	// Close wait for Publish.
	failurePause = time.Second
	flushTimeout = 5 * time.Second
)

// ErrCloseTimeout reports that Publish did not return within 5 seconds, so the last commits may not
// have been reported.
var ErrCloseTimeout = errors.New("wakeup: the publisher did not return in time")

// NewSender returns a sender that reports each commit through config.Journal from now on, until
// [Sender.Close]. It does not report commits through other Journals of the same tables. While there
// are no commits, it runs no goroutine. A nil logger logs nothing. Errors: [*ConfigError].
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
		hurry: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	s.close = sync.OnceFunc(func() { close(s.closing) })
	s.stop = config.Journal.Internal().Watch("", s.note)
	return s, nil
}

// Stats returns what the sender has done so far.
func (s *Sender) Stats() SenderStats {
	return SenderStats{Commits: s.commits.Load(), Messages: s.messages.Load(), Failures: s.failures.Load(), Dropped: s.dropped.Load()}
}

// Flush waits until all commits before the call are reported or dropped, for up to 5 seconds. A
// program that may be stopped at any time, such as a function in AWS Lambda, calls it before it
// returns. In an App, see millrace.App.Wakeups. Errors: the error of ctx, and
// context.DeadlineExceeded after 5 seconds. Nothing is lost then, because polls and sweeps find the
// events.
func (s *Sender) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	sent := s.waitFor()
	if sent == nil {
		return nil
	}
	select {
	case s.hurry <- struct{}{}:
	default:
	}
	select {
	case <-sent:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitFor returns the channel of the pass that sends what is pending now. It returns nil if
// everything was sent.
func (s *Sender) waitFor() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) > 0 {
		return s.next
	}
	return s.pass
}

// Close stops watching the journal, and reports the commits before. It does not close the
// publisher. Errors: [ErrCloseTimeout]; then the sender ends when Publish returns.
func (s *Sender) Close() error {
	s.stop()
	s.close()
	if s.Flush(context.Background()) != nil {
		return ErrCloseTimeout
	}
	return nil
}

// note records a commit. It runs in the goroutine of the committer, and never waits for Publish.
func (s *Sender) note(id aggregate.ID, version uint64) {
	s.commits.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	known, waits := s.pending[id]
	if !waits && len(s.pending)+s.sending >= maxPending {
		s.dropped.Add(1)
		return
	}
	s.pending[id] = max(known, version)
	if s.next == nil {
		s.next = make(chan struct{})
		go s.run()
	}
}

// run sends what is pending, in passes with pauses, until nothing is.
func (s *Sender) run() {
	for {
		pending := s.begin()
		if len(pending) == 0 {
			return
		}
		pause := s.config.Interval
		if !s.send(pending) {
			pause = failurePause
		}
		s.end()
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-s.hurry:
		case <-s.closing:
		}
		timer.Stop()
	}
}

// begin begins a pass, and returns what it has to send.
func (s *Sender) begin() map[aggregate.ID]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	pending := s.pending
	if len(pending) == 0 {
		s.next = nil
		return nil
	}
	s.pending, s.sending = map[aggregate.ID]uint64{}, len(pending)
	s.pass, s.next = s.next, make(chan struct{})
	return pending
}

// end ends a pass.
func (s *Sender) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.pass)
	s.pass, s.sending = nil, 0
}

// send publishes what is pending. After a failure it drops the rest, and returns false.
func (s *Sender) send(pending map[aggregate.ID]uint64) (ok bool) {
	for len(pending) > 0 {
		w := wakeup{Journal: s.config.Journal.Config().Tables.Journal}
		count := w.take(pending)
		if err := s.publish(w); err != nil {
			s.dropped.Add(uint64(count + len(pending))) //nolint:gosec // not negative
			if s.failures.Add(1)%failuresPerLog == 1 {
				s.logger.Error("Cannot publish wake-ups; other processes find the events when they poll", err, watermill.LogFields{"topic": s.config.Topic})
			}
			return false
		}
		s.messages.Add(1)
	}
	return true
}

// failuresPerLog: one of so many failures is logged.
const failuresPerLog = 60

// publish publishes a message. A panic of the publisher is an error, since it must not end the
// process.
func (s *Sender) publish(w wakeup) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the publisher panicked: %v", r)
		}
	}()
	var payload bytes.Buffer
	encoder := json.NewEncoder(&payload)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(w); err != nil {
		return err
	}
	return s.config.Publisher.Publish(s.config.Topic, message.NewMessage(watermill.NewUUID(), payload.Bytes()))
}
