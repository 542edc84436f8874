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

func TestABroadcastDropsPagesInEachProcess(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: journal.Packed, Shards: 2}))
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
		caches[n].Store("43", "another", 1)
		j := open()
		go func() { ended <- caches[n].Watch(ctx, j) }()
	}

	stale := func(cache *pagecache.Cache) bool {
		cache.Store("42", "old", 1) // from a read model that is behind
		_, ok := cache.Page("42")
		return !ok
	}
	require.Eventually(t, func() bool {
		// Repeated until both watch.
		account, err := accounts.Execute(ctx, "42", depositTo())
		return err == nil && account.Version > 1 && stale(caches[0]) && stale(caches[1])
	}, time.Minute, 20*time.Millisecond)
	current, err := accounts.Load(ctx, "42")
	require.NoError(t, err)
	caches[0].Store("42", "new", current.Version)

	page, ok := caches[0].Page("42")
	assert.True(t, ok)
	assert.Equal(t, "new", page)
	_, stays := caches[0].Page("43")
	assert.True(t, stays)
	end()
	require.NoError(t, <-ended)
	require.NoError(t, <-ended)
}
