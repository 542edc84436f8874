package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/internal/apptest"
	"github.com/millrace-dev/millrace/examples/internal/browsertest"
	"github.com/millrace-dev/millrace/journal"
)

// patience limits a failing test.
const patience = 5 * time.Minute

var (
	chromium browsertest.Chromium // one for all tests
	worlds   = map[journal.Layout]func() (*world, error){}
	closing  []func()
)

func TestMain(m *testing.M) {
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		worlds[layout] = sync.OnceValues(func() (*world, error) { return newWorld(layout, true) })
	}
	code := m.Run()
	chromium.Close()
	for _, end := range closing {
		end()
	}
	os.Exit(code)
}

// world is a running shop that the tests of a layout share. Each test changes only data of its own.
type world struct {
	*shop
	url string
}

var mu sync.Mutex // protects the closing

func newWorld(layout journal.Layout, hostile bool) (*world, error) {
	ctx := context.Background()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	db := dynamotest.Open()
	s, err := open(ctx, db.Client(), listener, settings{layout: layout, hostile: hostile, refresh: time.Second, logger: watermill.NopLogger{}})
	if err != nil {
		return nil, err
	}
	stop, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	closing = append(closing, func() {
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the shop:", err)
		}
		db.Close()
	})
	return &world{shop: s, url: "http://" + listener.Addr().String() + "/"}, nil
}

// onBoth runs a test on both layouts.
func onBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	for layout, open := range worlds {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()
			w, err := open()
			require.NoError(t, err)
			test(t, w)
		})
	}
}

func TestTheProgramServesTheConsole(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var out, log apptest.Terminal
	ended := make(chan error, 1)
	args := []string{"-listen", "127.0.0.1:0", "-layout", "packed", "-hostile"}
	inMemory := os.Getenv("MILLRACE_DYNAMODB_ENDPOINT") == ""
	if inMemory {
		args = append(args, "-database", "127.0.0.1:0")
	}
	go func() { ended <- run(ctx, args, &out, &log) }()
	var url, inspection string
	require.Eventually(t, func() bool {
		_, url, _ = strings.Cut(out.String(), "on ")
		url, inspection, _ = strings.Cut(url, "\n")
		return url != "" && (inspection != "" || !inMemory)
	}, patience, 10*time.Millisecond, log.String)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	reply, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	assert.Equal(t, http.StatusOK, reply.StatusCode)
	if inMemory {
		assert.Contains(t, inspection, "millrace groups --endpoint http://127.0.0.1:")
	}
	stop()
	require.NoError(t, <-ended)
}

func TestTheProgramRefusesWhatItCannotServe(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-listen", "0.0.0.0:0"}, {"-listen", "nowhere"}, {"-layout", "round", "-listen", "127.0.0.1:0"}, {"more"}, {"-unknown"}} {
		var out, log apptest.Terminal
		assert.Error(t, run(t.Context(), args, &out, &log), "%v", args)
	}
}

// quote returns a text as a JavaScript literal.
func quote(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}
