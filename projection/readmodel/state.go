package readmodel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

// state is the content of the item of a read model.
type state struct {
	change            string
	earlier           []string // newest first
	serving, previous uint64
	last              uint64 // the highest number so far
	live              []uint64
	forms             map[uint64]string // of the live generations that have one
}

// begin returns the state with another generation.
func (s state) begin(form string) state {
	s.last++
	s.live = append(slices.Clone(s.live), s.last)
	if form != "" {
		s.forms = maps.Clone(s.forms)
		if s.forms == nil {
			s.forms = map[uint64]string{}
		}
		s.forms[s.last] = form
	}
	return s
}

// drop returns the state without a generation.
func (s state) drop(number uint64) state {
	s.live = slices.DeleteFunc(slices.Clone(s.live), func(n uint64) bool { return n == number })
	s.forms = maps.Clone(s.forms)
	delete(s.forms, number)
	if s.previous == number {
		s.previous = 0
	}
	return s
}

func (s state) exists() bool { return s.change != "" }

// made reports whether a change was made. The state keeps the last maxEarlier changes.
func (s state) made(change string) bool {
	return change != "" && (s.change == change || slices.Contains(s.earlier, change))
}

const maxEarlier = attempts

func (s state) isLive(number uint64) bool { return slices.Contains(s.live, number) }

// current reads the state, and returns an error if there is none.
func (m *Model) current(ctx context.Context) (state, error) {
	s, err := m.read(ctx)
	if err == nil && !s.exists() {
		err = fmt.Errorf("%w: %q is not in table %q any more: if that is intended, open it again", ErrCorrupt, m.config.Name, m.config.Table)
	}
	return s, err
}

// read reads the state, strongly consistent.
func (m *Model) read(ctx context.Context) (state, error) {
	now := time.Now()
	out, err := dynamo.Within(ctx, &dynamodb.GetItemInput{TableName: &m.config.Table, Key: m.key(), ConsistentRead: aws.Bool(true)}, m.client.GetItem, nil)
	if err != nil {
		return state{}, m.explain("read", err)
	}
	s, err := m.stateOf(out.Item)
	if err != nil {
		return state{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.exists() {
		m.cached, m.readAt = s, now
	}
	return s, nil
}

var errUnchanged = errors.New("nothing to change")

// attempts is how often a change is tried if another process is faster.
const attempts = 10

// change reads the state and stores the result of a function of it. If the function returns
// errUnchanged, change stores nothing and returns no error.
func (m *Model) change(ctx context.Context, what string, create bool, change func(state) (state, error)) (state, error) {
	var next state
	for range attempts {
		seen, err := m.read(ctx)
		if err != nil {
			return state{}, err
		}
		if seen.made(next.change) {
			return next, nil // the reply to it was lost
		}
		if !seen.exists() && !create {
			_, err = m.current(ctx)
			return state{}, err
		}
		next, err = change(seen)
		if errors.Is(err, errUnchanged) {
			return seen, nil
		}
		if err != nil {
			return state{}, fmt.Errorf("%s read model %q: %w", what, m.config.Name, err)
		}
		next.change = uuid.NewString()
		if seen.exists() {
			next.earlier = append([]string{seen.change}, seen.earlier[:min(len(seen.earlier), maxEarlier-1)]...)
		}
		err = m.write(ctx, seen, next)
		var moved *types.ConditionalCheckFailedException
		if errors.As(err, &moved) {
			continue
		}
		if err != nil {
			return state{}, m.explain(what, err)
		}
		m.mu.Lock()
		m.cached, m.readAt = next, time.Now()
		m.mu.Unlock()
		return next, nil
	}
	return state{}, fmt.Errorf("%s read model %q: %w", what, m.config.Name, ErrChanged)
}
