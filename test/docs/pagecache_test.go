package docs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/pagecache"
)

func TestThePageOfProjectionsShowsABroadcastThatCompiles(t *testing.T) {
	t.Parallel()
	assert.Contains(t, read(t, "projections.md"), "```go\n"+read(t, "../test/docs/pagecache/pagecache.go")+"```\n")
}

func TestABroadcastDropsPagesInEachProcess(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 2}))
	open := func() *journal.Journal {
		j, err := journal.Open(t.Context(), client, journal.Config{})
		require.NoError(t, err)
		return j
	}
	accounts, err := repository.New(open(), deposits, repository.Config{})
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	caches, ended := make([]*pagecache.Cache, 2), make(chan error, 2)
	for n := range caches {
		caches[n] = &pagecache.Cache{}
		caches[n].Pages.Store("42", "old")
		caches[n].Pages.Store("43", "another")
		j := open()
		go func() { ended <- caches[n].Watch(ctx, j) }()
	}

	require.Eventually(t, func() bool {
		if _, err := accounts.Execute(ctx, "42", depositTo()); err != nil { // again until both watch
			return false
		}
		_, first := caches[0].Pages.Load("42")
		_, second := caches[1].Pages.Load("42")
		return !first && !second
	}, time.Minute, 20*time.Millisecond)

	_, stays := caches[0].Pages.Load("43")
	assert.True(t, stays)
	end()
	require.NoError(t, <-ended)
	require.NoError(t, <-ended)
}
