package storage_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/storage"
)

func TestAFingerprintIsPartOfTheCommitID(t *testing.T) {
	t.Parallel()
	f := storage.FingerprintOf("pay", []byte("10 EUR"))
	for name, id := range map[string]uuid.UUID{"random": uuid.New(), "by time": uuid.Must(uuid.NewV7())} {
		marked, ok := f.Mark(id.String())

		require.True(t, ok, name)
		assert.Equal(t, id.String()[:14], marked[:14], "it keeps its order")
		assert.EqualValues(t, 8, uuid.MustParse(marked).Version())
		assert.Equal(t, uuid.RFC4122, uuid.MustParse(marked).Variant())
		assert.False(t, f.Contradicts(marked), name)
		for _, other := range []storage.Fingerprint{
			storage.FingerprintOf("pay", []byte("20 EUR")), storage.FingerprintOf("other", []byte("10 EUR")), storage.FingerprintOf("pay", nil),
		} {
			assert.True(t, other.Contradicts(marked), name)
		}
		assert.False(t, f.Contradicts(id.String()), "a commit without a fingerprint")
	}
	second, _ := f.Mark(uuid.NewString())
	first, _ := f.Mark(uuid.NewString())
	assert.NotEqual(t, first, second, "each commit has its own id")
	for _, other := range []string{"", "commit-1", second, "urn:uuid:" + uuid.NewString()} {
		_, ok := f.Mark(other)
		assert.False(t, ok, other)
	}
	assert.False(t, f.Contradicts("commit-1"))
}
