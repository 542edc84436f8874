package sequence

import "github.com/millrace-dev/millrace/internal/storage"

// NoteFailure records the last failed attempt at the next event of a stream.
func (q *Sequencer[W]) NoteFailure(st *Stream[W], f storage.Failure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if st.failure != nil && st.failure.Number == f.Number && st.failure.Resumed == f.Resumed {
		f.Attempts = max(f.Attempts, st.failure.Attempts)
	}
	st.failure = &f
}

// AttemptsAt returns the number of failed attempts at the next event of a stream, also of former
// owners, since the group was resumed.
func (q *Sequencer[W]) AttemptsAt(st *Stream[W], number, resumed uint64) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if st.failure == nil || st.failure.Number != number || st.failure.Resumed != resumed {
		return 0
	}
	return st.failure.Attempts
}

// MayHaveEnded reports whether the last attempt at an event may have ended its process.
func (q *Sequencer[W]) MayHaveEnded(st *Stream[W], number uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return st.failure != nil && st.failure.Number == number && st.failure.Begun
}

// Failing returns streams whose attempts are not stored, at most a number of them.
func (q *Sequencer[W]) Failing(most int) (streams []*Stream[W]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for st := range q.unfinished {
		if len(streams) < most && st.outdated() {
			streams = append(streams, st)
		}
	}
	return streams
}
