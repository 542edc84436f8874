package publisher_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

// sent is the version that a commit expects, and whether it is proven.
type sent struct {
	Expected uint64
	Proven   bool
}

// watch records the commits of a publisher.
func watch(p *publisher.Publisher) *[]sent {
	commits := &[]sent{}
	p.Watch(func(c storage.Commit) { *commits = append(*commits, sent{c.Expected, c.Proven}) })
	return commits
}

// published writes n messages to order1 by another process.
func (s *store) published(n int) {
	s.t.Helper()
	require.NoError(s.t, s.publisher(publisher.Config{Journal: s.another()}).Publish("order", messagesTo(order1, "other", n)...))
}

func TestAVersionThatWasReadOrWrittenIsProven(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	s.published(3)
	p := s.publisher(publisher.Config{})
	commits := watch(p)
	for range 2 {
		require.NoError(t, p.Publish("order", messagesTo(order1, "m", 2)...))
	}
	assert.Equal(t, []sent{{3, true}, {5, true}}, *commits)
}

func TestTheVersionThatAConflictReportsIsProven(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	commits := watch(p)
	require.NoError(t, p.Publish("order", messageTo(order1, "m")))
	s.published(2)
	require.NoError(t, p.Publish("order", messageTo(order1, "m")))
	assert.Equal(t, []sent{{0, true}, {1, true}, {3, true}}, *commits)
}

func TestAnExpectedVersionIsProvenOnlyIfItIsTheRememberedOne(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	s.published(3)
	p := s.publisher(publisher.Config{})
	commits := watch(p)

	require.NoError(t, p.Publish("order", expecting(messagesTo(order1, "m", 1), 3)...), "nothing is remembered")
	require.NoError(t, p.Publish("order", expecting(messagesTo(order1, "m", 1), 4)...), "the receipt's")
	require.ErrorIs(t, p.Publish("order", expecting(messagesTo(order1, "m", 1), 2)...), journal.ErrConflict)
	require.NoError(t, p.Publish("order", expecting(messagesTo(order1, "m", 1), 5)...), "the conflict's")
	require.ErrorIs(t, p.Publish("order", expecting(messagesTo(order1, "m", 1), 9)...), journal.ErrConflict)
	require.NoError(t, p.Publish("order", expecting(messagesTo(order1, "m", 1), 6)...), "it was forgotten")
	require.ErrorIs(t, p.Publish("order", expecting(messagesTo(order1, "m", 1), 0)...), journal.ErrConflict)

	assert.Equal(t, []sent{{3, false}, {4, true}, {2, false}, {5, true}, {9, false}, {6, false}, {0, true}}, *commits)
}

// Every second request is lost. Its commit is repeated at the same version.
func TestARepeatedAttemptKeepsItsProof(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := newStore(t, journal.Config{RetryBudget: time.Nanosecond})
		s.published(3)
		s.wire.set(func(w *wire) {
			w.onWrite = func(_ context.Context, n int) error {
				if n%2 == 1 {
					return errLostReply
				}
				return nil
			}
		})
		p := s.publisher(publisher.Config{})
		commits := watch(p)

		require.NoError(t, p.Publish("order", expecting(messagesTo(order1, "m", 1), 3)...))
		require.NoError(t, p.Publish("order", messageTo(order1, "m")))

		assert.Equal(t, []sent{{3, false}, {3, false}, {4, true}, {4, true}}, *commits)
	})
}
