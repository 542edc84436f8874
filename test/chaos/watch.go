//go:build unix

package chaos

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// watch records the times at which a member may have lost its lease: it was not scheduled, or the
// emulator did not reply, for longer than patience.
type watch struct {
	notes    *log
	patience time.Duration

	mu  sync.Mutex
	err error
}

func newWatch(notes *log, patience time.Duration) *watch {
	return &watch{notes: notes, patience: patience}
}

// schedule checks until ctx ends whether the process is scheduled.
func (w *watch) schedule(ctx context.Context) {
	ticker := time.NewTicker(w.patience / 4)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		w.waited(now.Sub(last))
		last = now
	}
}

func (w *watch) waited(took time.Duration) {
	if took < w.patience {
		return
	}
	if err := w.notes.write(entry{Kind: trouble, Took: took}); err != nil {
		w.mu.Lock()
		w.err = errors.Join(w.err, err)
		w.mu.Unlock()
	}
}

func (w *watch) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// client returns the same client with its requests watched.
func (w *watch) client(client *dynamodb.Client) *dynamodb.Client {
	o := client.Options()
	o.HTTPClient = &watchedHTTP{watch: w, next: o.HTTPClient}
	return dynamodb.New(o)
}

type watchedHTTP struct {
	watch *watch
	next  dynamodb.HTTPClient
}

func (c *watchedHTTP) Do(r *http.Request) (*http.Response, error) {
	start := time.Now()
	// Record it also before the reply, since the process may be killed before that.
	early := time.AfterFunc(c.watch.patience, func() { c.watch.waited(time.Since(start)) })
	reply, err := c.next.Do(r)
	early.Stop()
	c.watch.waited(time.Since(start))
	return reply, err
}
