package brokers

import (
	"net"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// natsServer is a server with JetStream in this process.
type natsServer struct {
	t       *testing.T
	options server.Options
	server  *server.Server
	taken   []*message.Message
	last    uint64 // number of the last message in taken
}

func newNATS(t *testing.T) broker {
	b := &natsServer{t: t, options: server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, JetStream: true, StoreDir: t.TempDir()}}
	b.start()
	t.Cleanup(func() { b.stop() })
	addr, ok := b.server.Addr().(*net.TCPAddr)
	require.True(t, ok)
	b.options.Port = addr.Port
	connection, err := natsgo.Connect(b.address())
	require.NoError(t, err)
	defer connection.Close()
	js, err := connection.JetStream()
	require.NoError(t, err)
	_, err = js.AddStream(&natsgo.StreamConfig{Name: "orders", Duplicates: 2 * time.Minute})
	require.NoError(t, err)
	return b
}

func (b *natsServer) start() {
	s, err := server.NewServer(&b.options)
	require.NoError(b.t, err)
	go s.Start()
	require.True(b.t, s.ReadyForConnections(time.Minute))
	b.server = s
}

func (b *natsServer) stop() {
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

func (b *natsServer) address() string { return b.server.ClientURL() }

func (b *natsServer) outage(d time.Duration) {
	b.stop()
	time.Sleep(d)
	b.start()
}

func (b *natsServer) all() []*message.Message {
	connection, err := natsgo.Connect(b.address())
	require.NoError(b.t, err)
	defer connection.Close()
	js, err := connection.JetStream()
	require.NoError(b.t, err)
	info, err := js.StreamInfo("orders")
	require.NoError(b.t, err)
	for b.last < info.State.LastSeq {
		raw, err := js.GetMsg("orders", b.last+1)
		require.NoError(b.t, err)
		b.last++
		msg, err := (&nats.NATSMarshaler{}).Unmarshal(&natsgo.Msg{Data: raw.Data, Header: raw.Header})
		require.NoError(b.t, err)
		b.taken = append(b.taken, msg)
	}
	return b.taken
}
