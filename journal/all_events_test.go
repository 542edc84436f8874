package journal_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal"
)

func TestAllEventsAreThoseThatAreLeft(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user("1")
		all := func() (numbers []int, err error) {
			for r, err := range s.AllEvents(t.Context(), id) {
				if err != nil {
					return numbers, err
				}
				numbers = append(numbers, int(r.Number))
			}
			return numbers, nil
		}
		_, err := all()
		require.ErrorIs(t, err, journal.ErrNotFound)

		s.covered(t, id, 30)
		s.write(t, id, 31, 2)
		numbers, err := all()
		require.NoError(t, err)
		assert.Equal(t, numbersFrom(1, 32), numbers)

		require.NoError(t, s.Truncate(t.Context(), id, 21, journal.RemoveOptions{}))
		numbers, err = all()
		require.NoError(t, err)
		assert.Equal(t, numbersFrom(21, 32), numbers)

		require.NoError(t, s.Delete(t.Context(), id, 32, journal.RemoveOptions{}))
		_, err = all()
		assert.ErrorAs(t, err, new(*journal.DeletedError))
	})
}
