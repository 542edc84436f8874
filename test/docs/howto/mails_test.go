package howto_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/mails"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

// provider sends a mail for each key, and its first reply is an error.
type provider struct {
	mu       sync.Mutex
	requests int
	sent     map[string]bool
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	p.sent[r.Header.Get("Idempotency-Key")] = true
	if p.requests == 1 {
		w.WriteHeader(http.StatusBadGateway)
	}
}

func (p *provider) counts() (requests, sent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests, len(p.sent)
}

func TestARequestThatIsRepeatedSendsOneMail(t *testing.T) {
	t.Parallel()
	p := &provider{sent: map[string]bool{}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	app, err := millrace.Open(t.Context(), dynamotest.New(t).Client(), millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 1}})
	require.NoError(t, err)
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	require.NoError(t, mails.Add(app, server.Client(), server.URL))
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, stop()) })

	_, err = orders.Execute(t.Context(), "1", shop.Place("ada", 30))
	require.NoError(t, err)

	require.Eventually(t, func() bool { requests, _ := p.counts(); return requests == 2 }, time.Minute, 10*time.Millisecond)
	_, sent := p.counts()
	assert.Equal(t, 1, sent)
}
