//go:build unix

package chaos

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// network holds up some transactions on their way. They get there even if the caller has given up
// by then, and perhaps after another member has gone on, which is what fencing is for.
type network struct {
	next dynamodb.HTTPClient
	most time.Duration // of a delay

	mu     sync.Mutex
	random *rand.Rand
}

// lateOneIn is how seldom a transaction is held up.
const lateOneIn = 30

// slowed returns the same client with such a network. Whatever keeps a lease is as quick as ever.
func slowed(client *dynamodb.Client, most time.Duration, seed uint64) *dynamodb.Client {
	o := client.Options()
	o.HTTPClient = &network{next: o.HTTPClient, most: most, random: rand.New(rand.NewPCG(seed, 2))} //nolint:gosec // a seed decides
	return dynamodb.New(o)
}

func (n *network) Do(r *http.Request) (*http.Response, error) {
	delay, late := n.draw()
	if !late || !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactWriteItems") {
		return n.next.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	sent := r.Clone(context.WithoutCancel(r.Context()))
	sent.Body = io.NopCloser(bytes.NewReader(body))
	type result struct {
		reply *http.Response
		err   error
	}
	arrived, gone := make(chan result), make(chan struct{})
	defer close(gone)
	// What is on its way when the process ends is lost.
	time.AfterFunc(delay, func() {
		reply, err := n.next.Do(sent)
		select {
		case arrived <- result{reply, err}:
		case <-gone:
			if err == nil {
				_ = reply.Body.Close() // nobody reads it
			}
		}
	})
	select {
	case a := <-arrived:
		return a.reply, a.err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func (n *network) draw() (delay time.Duration, late bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Duration(n.random.Int64N(int64(n.most))), n.random.IntN(lateOneIn) == 0
}
