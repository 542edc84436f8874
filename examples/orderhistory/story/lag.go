package story

import (
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/subscriber"
)

// lag records the time from the commit of each event to its effect.
type lag struct {
	mu  sync.Mutex
	all []time.Duration
}

func (l *lag) measure(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		produced, err := next(msg)
		if record, ok := subscriber.RecordFromContext(msg.Context()); ok && err == nil {
			l.mu.Lock()
			l.all = append(l.all, time.Since(record.OccurredAt))
			l.mu.Unlock()
		}
		return produced, err
	}
}

func (l *lag) summary() (median, most time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return 0, 0
	}
	slices.Sort(l.all)
	return l.all[len(l.all)/2], l.all[len(l.all)-1]
}
