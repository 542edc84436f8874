package engine

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// When several tables are locked and one of them was deleted, the locks of the others are released.
func TestATableThatIsGoneLeavesTheOthersUnlocked(t *testing.T) {
	t.Parallel()
	a, b, c := &table{name: "a"}, &table{name: "b"}, &table{name: "c"}
	gone := errors.New("gone")
	_, err := New(Config{}).lockAll([]*table{c, b, a, c}, func(t *table) error {
		if t == c {
			return gone
		}
		t.mu.Lock()
		return nil
	}, (*table).unlock)
	require.ErrorIs(t, err, gone)
	for _, left := range []*table{a, b, c} {
		assert.True(t, left.mu.TryLock(), left.name)
	}
}
