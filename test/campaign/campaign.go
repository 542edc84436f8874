// Package campaign runs worlds of a test harness, each of which is decided by a seed and its
// number, until there were enough.
package campaign

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Run runs worlds 0, 1, 2 and so on, with limited concurrency, until enough returns true or ctx
// ends.
func Run(ctx context.Context, parallel int, enough func() bool, world func(ctx context.Context, number uint64)) {
	var next atomic.Uint64
	var wait sync.WaitGroup
	for range max(1, parallel) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for ctx.Err() == nil && !enough() {
				world(ctx, next.Add(1)-1)
			}
		}()
	}
	wait.Wait()
}

// Progress writes a line every ten seconds, until stop is called.
func Progress(to io.Writer, line func() string) (stop func()) {
	ticker, done := time.NewTicker(10*time.Second), make(chan struct{})
	var wait sync.WaitGroup
	wait.Add(1)
	go func() {
		defer wait.Done()
		for {
			select {
			case <-ticker.C:
				_, _ = fmt.Fprintln(to, line())
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		wait.Wait()
	}
}

// Ranking lists how often each thing was seen, the most frequent first, so that a reader notices
// when something never happened.
func Ranking(seen map[string]int) string {
	var all []string
	for _, what := range slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		return cmp.Or(cmp.Compare(seen[b], seen[a]), cmp.Compare(a, b))
	}) {
		all = append(all, fmt.Sprint(what, " ", seen[what]))
	}
	return strings.Join(all, ", ")
}
