package journal_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

type told struct {
	id      aggregate.ID
	version uint64
}

func TestAWatcherIsToldOfEachCommitOfItsType(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		var first, second, other []told
		s.Watch("user-account", func(id aggregate.ID, version uint64) {
			first = append(first, told{id, version})
			head, err := s.Head(t.Context(), id)
			assert.NoError(t, err)
			assert.Equal(t, version, head.Version, "what is told is written")
		})
		s.Watch("user-account", func(id aggregate.ID, version uint64) { second = append(second, told{id, version}) })
		s.Watch("user", func(id aggregate.ID, version uint64) { other = append(other, told{id, version}) })

		s.write(t, user("1"), 1, 3)
		s.write(t, user("2"), 1, 1)
		s.write(t, user("1"), 4, 1)

		want := []told{{user("1"), 3}, {user("2"), 1}, {user("1"), 4}}
		assert.Equal(t, want, first)
		assert.Equal(t, want, second)
		assert.Empty(t, other)
	})
}

func TestAWatcherThatStoppedIsToldNothingMore(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		var stopped, going int
		stop := s.Watch("user-account", func(aggregate.ID, uint64) { stopped++ })
		s.Watch("user-account", func(aggregate.ID, uint64) { going++ })
		s.write(t, user("1"), 1, 1)

		stop()
		stop() // it has no further effect
		s.write(t, user("1"), 2, 1)

		assert.Equal(t, 1, stopped)
		assert.Equal(t, 2, going)
	})
}

func TestAWatcherIsNotToldOfWhatIsNotWritten(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		calls := 0
		s.Watch("user-account", func(aggregate.ID, uint64) { calls++ })
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for ctx, commit := range map[context.Context]storage.Commit{
			t.Context(): {Aggregate: user("1"), Expected: 5, Events: events(6, 1)},
			ended:       one("1"),
		} {
			_, err := s.Append(ctx, commit)
			require.Error(t, err)
		}
		_, err := s.Append(t.Context(), storage.Commit{Aggregate: user("1")})
		require.ErrorIs(t, err, journal.ErrInvalidCommit)
		assert.Zero(t, calls)
	})
}

func TestAWatcherIsToldOfACommitWhoseReplyWasLost(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		j := s.through(t, s.onCommits(func(call int, send func() (*http.Response, error)) (*http.Response, error) {
			if call == 1 {
				return lose(t, send)
			}
			return send()
		}))
		calls := 0
		j.Watch("user-account", func(aggregate.ID, uint64) { calls++ })

		mustAppend(t, j, one("1"))
		assert.Equal(t, 1, calls)
	})
}

func TestWatchersComeAndGoWhileOthersCommit(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		var always atomic.Int64
		s.Watch("user-account", func(aggregate.ID, uint64) { always.Add(1) })
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Add(2)
			go func() {
				defer wg.Done()
				for n := range 10 {
					_, err := s.Append(t.Context(), storage.Commit{Aggregate: user(fmt.Sprint(i)), Expected: uint64(n), Events: events(n+1, 1)})
					assert.NoError(t, err)
				}
			}()
			go func() {
				defer wg.Done()
				for range 100 {
					var stopped atomic.Bool
					stop := s.Watch("user-account", func(aggregate.ID, uint64) {
						assert.False(t, stopped.Load(), "told after it had stopped")
					})
					stop()
					stopped.Store(true)
				}
			}()
		}
		wg.Wait()
		assert.EqualValues(t, 40, always.Load())
	})
}
