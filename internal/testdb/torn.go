package testdb

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

// WhileTorn calls meanwhile while only a random part of the items of write's transaction is
// written. write continues when meanwhile has returned, but at the latest after 20 ms. On a slow
// machine meanwhile may not have done much by then, so repeat the test.
func WhileTorn(t testing.TB, db *dynamotest.DB, write, meanwhile func()) {
	t.Helper()
	var running sync.WaitGroup
	tear := db.Inject(dynamotest.Tear(func(context.Context) {
		returned := make(chan struct{})
		running.Add(1)
		go func() {
			defer running.Done()
			defer close(returned)
			meanwhile()
		}()
		select {
		case <-returned:
		case <-time.After(20 * time.Millisecond):
		}
	}), dynamotest.Times(1))
	write()
	tear.Remove()
	running.Wait()
	require.Equal(t, 1, tear.Fired(), "write was not a transaction of several items")
}
