package apptest

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Relay has an address that stays the same while the server behind it is replaced. A server that
// has ended cannot rely on its own address, since another program may use it.
type Relay struct {
	listener net.Listener

	mu sync.Mutex
	to string
}

// NewRelay returns a relay that ends with the test.
func NewRelay(t *testing.T) *Relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &Relay{listener: listener}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.run()
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return r
}

// Address returns the host and port of the relay.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// To makes the relay forward new connections to an address. It closes them if the address is empty.
func (r *Relay) To(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = address
}

func (r *Relay) run() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		to := r.to
		r.mu.Unlock()
		go forward(client, to)
	}
}

// forward copies both ways until one side closes its connection.
func forward(client net.Conn, to string) {
	defer func() { _ = client.Close() }()
	if to == "" {
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}
