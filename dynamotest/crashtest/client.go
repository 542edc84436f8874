package crashtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

var errNoInstance = errors.New("no instance runs")

// Client returns a client that sends each request to one of the instances, in turn. It repeats a
// request with the next one after 502, 503, 504 or no reply, until [Fleet.Patience] or the context
// of the request ends. The host of a URL is ignored: "/shows/hamlet" is enough. Replies are read as
// a whole, so use [Instance.URL] for streams.
func (f *Fleet[S]) Client() *http.Client {
	return &http.Client{Transport: &balancer[S]{fleet: f, base: &http.Transport{DisableKeepAlives: true}}}
}

// balancer sends requests to the instances of a fleet.
type balancer[S Service] struct {
	fleet *Fleet[S]
	base  *http.Transport // without connections that stay open, so that no crash is noticed late
	turn  atomic.Uint64
}

// RoundTrip implements http.RoundTripper.
func (b *balancer[S]) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), b.fleet.Patience)
	defer cancel()
	last := errNoInstance
	for ctx.Err() == nil {
		response, err := b.attempt(ctx, r, body)
		switch {
		case err != nil:
			if ctx.Err() == nil || errors.Is(last, errNoInstance) {
				last = err
			}
		case response.StatusCode >= http.StatusBadGateway && response.StatusCode <= http.StatusGatewayTimeout:
			last = fmt.Errorf("the last reply has status %s", response.Status)
		default:
			return response, nil
		}
		pause(ctx, 10*time.Millisecond)
	}
	return nil, fmt.Errorf("no instance answered: %w", last)
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer func() { _ = r.Body.Close() }()
	return io.ReadAll(r.Body)
}

// attempt sends a request to the next instance, and reads its reply.
func (b *balancer[S]) attempt(ctx context.Context, r *http.Request, body []byte) (*http.Response, error) {
	running := b.fleet.running()
	if len(running) == 0 {
		return nil, errNoInstance
	}
	to := running[b.turn.Add(1)%uint64(len(running))]
	again := r.Clone(ctx)
	again.URL.Scheme, again.URL.Host = "http", to.listener.Addr().String()
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response, err := b.base.RoundTrip(again)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	reply, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body, response.Request = io.NopCloser(bytes.NewReader(reply)), r
	return response, nil
}

// listener knows its connections, so that a crash breaks them.
type listener struct {
	net.Listener

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	l.open[c] = true
	return &connection{c, l}, nil
}

// cut closes the listener and all its connections.
func (l *listener) cut() {
	_ = l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for c := range l.open {
		_ = c.Close()
	}
}

// connection leaves its listener when it is closed.
type connection struct {
	net.Conn
	of *listener
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
