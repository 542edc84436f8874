package journal_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Headers of Kafka are bytes.
func TestMetadataThatIsNotTextSurvives(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		odd := aggregate.Metadata{"key": "value", "binary": "\xff\x00", "": "empty key", "\xfe": ""}
		commit := storage.Commit{Aggregate: user("1"), Events: events(1, 30)}
		for i := range commit.Events {
			commit.Events[i].Metadata = odd
		}
		mustAppend(t, s, commit)

		for _, to := range []int{1, 30} { // by key, and with the index
			records, err := read(t, s.Engine, user("1"), 1, uint64(to))
			require.NoError(t, err)
			requireNumbers(t, records, 1, to)
			for _, r := range records {
				assert.Equal(t, odd, r.Metadata)
			}
		}
		page, err := s.TailShard(t.Context(), s.tailOf(user("1")))
		require.NoError(t, err)
		require.Len(t, page.Records, 30)
		for _, r := range page.Records {
			assert.Equal(t, odd, r.Metadata)
		}
	})
}
