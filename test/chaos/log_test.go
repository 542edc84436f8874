package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestALogGivesBackWhatWasWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.log")
	r := reader{path: path}
	require.NoError(t, r.read(), "nobody has written yet")
	assert.Empty(t, r.entries)

	l, err := openLog(path, "p1")
	require.NoError(t, err)
	before := time.Now()
	want := []entry{
		{Kind: up, Member: "p1"},
		{Kind: deliver, Member: "p1", Thing: "3.14", Number: 15, Token: 92},
		{Kind: trouble, Member: "p1", Took: time.Second},
		{Kind: kill, Member: "p2"},
	}
	for _, e := range want {
		require.NoError(t, l.write(e))
		require.NoError(t, r.read(), "line by line")
	}
	require.NoError(t, l.close())
	for i := range r.entries {
		assert.WithinRange(t, r.entries[i].At, before, time.Now())
		r.entries[i].At = time.Time{}
	}
	assert.Equal(t, want, r.entries)
}

func TestLinesOfManyWritersStayWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.log")
	var wait sync.WaitGroup
	for n := range 8 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			l, err := openLog(path, fmt.Sprint("p", n))
			if !assert.NoError(t, err) {
				return
			}
			for i := range uint64(100) {
				assert.NoError(t, l.write(entry{Kind: ack, Thing: "x", Number: i}))
			}
			assert.NoError(t, l.close())
		}()
	}
	wait.Wait()
	r := reader{path: path}
	require.NoError(t, r.read())
	assert.Len(t, r.entries, 800)
	next := map[string]uint64{}
	for _, e := range r.entries {
		assert.Equal(t, next[e.Member], e.Number, "the order of one writer is kept")
		next[e.Member]++
	}
}

func TestALineThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.log")
	l, err := openLog(path, "p1")
	require.NoError(t, err)
	require.Error(t, l.write(entry{Kind: ack, Thing: strings.Repeat("x", lineBytes)}))
	require.NoError(t, l.close())
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Empty(t, b)
}

func TestADamagedLogIsNoLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.log")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("?", lineBytes)), 0o600))
	assert.ErrorContains(t, (&reader{path: path}).read(), "x.log:1")
}
