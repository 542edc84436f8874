package howto_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
	"github.com/millrace-dev/millrace/test/docs/howto/deploy"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

// start runs an instance until the returned function is called.
func start(t *testing.T, client *dynamodb.Client, name string, handle message.NoPublishHandlerFunc) (stop func()) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- deploy.Run(ctx, client, listener, name, handle) }()
	require.Eventually(t, func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/readyz", nil)
		require.NoError(t, err)
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		_ = reply.Body.Close()
		return reply.StatusCode == http.StatusOK
	}, time.Minute, 20*time.Millisecond)
	return sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
}

func TestARollingDeploymentRepeatsNoEvent(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	config := journal.Config{
		Layout: journal.Packed, Shards: 4,
		Tables: journal.Tables{Journal: "shop-journal", Snapshot: "shop-snapshot", Checkpoint: "shop-checkpoint"},
	}
	require.NoError(t, journal.Create(t.Context(), client, config))
	j, err := journal.Open(t.Context(), client, config)
	require.NoError(t, err)
	orders, err := repository.New(j, shop.Orders, repository.Config{})
	require.NoError(t, err)
	var mu sync.Mutex
	times := map[string]int{}
	handle := func(msg *message.Message) error {
		mu.Lock()
		defer mu.Unlock()
		times[msg.UUID]++
		return nil
	}
	var placed []repository.Aggregate[shop.Order]
	place := func(id string) {
		order, err := orders.Execute(t.Context(), id, shop.Place("ada", 30))
		require.NoError(t, err)
		placed = append(placed, order)
	}

	former := start(t, client, "former", handle)
	for i := range 20 {
		place(fmt.Sprint("a", i))
	}
	next := start(t, client, "next", handle)
	defer next()
	for i := range 20 {
		place(fmt.Sprint("b", i))
	}
	former()
	for i := range 20 {
		place(fmt.Sprint("c", i))
	}

	g := groups.New(j)
	for _, order := range placed {
		require.NoError(t, g.WaitApplied(t.Context(), "labels", order.ID, order.Version))
	}
	group, err := g.Of("labels", "order").Status(t.Context())
	require.NoError(t, err)
	require.Len(t, group.Members, 1)
	assert.Equal(t, "next", group.Members[0].Name)
	mu.Lock()
	defer mu.Unlock()
	assert.Len(t, times, 60)
	for id, n := range times {
		assert.Equal(t, 1, n, id)
	}
}
