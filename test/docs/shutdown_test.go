package docs

import (
	"context"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
	"github.com/millrace-dev/millrace/test/docs/shutdown"
)

// deposits are events of topic account.
var deposits = aggregate.Define[balance]("account", deposited{})

func depositTo() aggregate.Decision[balance] {
	return func(balance) (aggregate.Events[balance], error) {
		return aggregate.Events[balance]{deposited{1}}, nil
	}
}

func TestACleanShutdownWaitsForHandlersAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	j := testjournal.New(t, dynamotest.New(t).Client(), journal.Config{Layout: journal.Packed, Shards: 2})
	accounts := testjournal.Repository(t, j, deposits, repository.Config{})
	for _, id := range []string{"1", "2", "3"} {
		testjournal.Execute(t, accounts, id, depositTo())
	}
	var mu sync.Mutex
	handled := map[string]int{}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	handle := func(msg *message.Message) error {
		stop() // the signal comes in the middle
		if err := msg.Context().Err(); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		handled[msg.UUID]++
		return nil
	}

	require.NoError(t, shutdown.Run(ctx, j, handle))

	g, err := groups.Of(j, "mails", "account").Status(t.Context())
	require.NoError(t, err)
	assert.Empty(t, g.Members, "it has left, so another member takes over at once")
	again, end := context.WithCancel(t.Context())
	defer end()
	ended := make(chan error, 1)
	go func() {
		ended <- shutdown.Run(again, j, func(msg *message.Message) error {
			mu.Lock()
			defer mu.Unlock()
			handled[msg.UUID]++
			return nil
		})
	}()
	for _, id := range []string{"1", "2", "3"} {
		require.NoError(t, groups.New(j).WaitApplied(t.Context(), "mails", aggregate.ID{Type: "account", Value: id}, 1))
	}
	end()
	require.NoError(t, <-ended)
	assert.Len(t, handled, 3)
	for id, times := range handled {
		assert.Equal(t, 1, times, id)
	}
}

func TestAShutdownThatComesBeforeTheStartIsClean(t *testing.T) {
	t.Parallel()
	j := testjournal.New(t, dynamotest.New(t).Client(), journal.Config{Layout: journal.Packed, Shards: 1})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, shutdown.Run(ctx, j, func(*message.Message) error { return nil }))
}
