package service_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/planningpoker/service"
)

// patience bounds a failing test, and is shorter than a router that does not run takes to close.
const patience = 25 * time.Second

func TestAServerWhoseConsumerCannotBeginSaysSoAtOnce(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	_, err := service.Open(t.Context(), db.Client(), service.Config{})
	require.NoError(t, err)
	denied := &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no access to the positions"}
	fault := db.Inject(dynamotest.Refuse(denied), dynamotest.Table("OperationCheckpoint"), dynamotest.On("GetItem", "PutItem", "Query", "UpdateItem"))
	defer fault.Remove()
	ended := make(chan error, 1)

	go func() { ended <- start(t.Context(), db) }()

	select {
	case err := <-ended:
		assert.ErrorContains(t, err, "no access to the positions")
	case <-time.After(patience):
		assert.Fail(t, "it must not hang")
	}
}

func TestAServerThatIsNotToStartAnyMoreStops(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	_, err := service.Open(t.Context(), db.Client(), service.Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fault := db.Inject(dynamotest.Latency(time.Hour, time.Hour), dynamotest.Table("OperationCheckpoint"), dynamotest.On("GetItem", "PutItem", "Query", "UpdateItem"))
	defer fault.Remove()
	ended := make(chan error, 1)

	go func() { ended <- start(ctx, db) }()
	require.Eventually(t, func() bool { return fault.Fired() > 0 }, patience, time.Millisecond, "the consumer must try to begin")
	cancel()

	select {
	case err := <-ended:
		assert.ErrorIs(t, err, context.Canceled)
	case <-time.After(patience):
		assert.Fail(t, "it must not hang")
	}
}

func TestAServerWhoseConsumerEndsIsToldSo(t *testing.T) {
	t.Parallel()
	s, err := service.Start(t.Context(), dynamotest.New(t).Client(), service.ServerConfig{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)

	require.NoError(t, s.Consumer.Close())

	require.EqualError(t, s.Run(t.Context()), "the consumer has ended")
	require.Error(t, s.Ready(t.Context()))
	require.NoError(t, s.Close())
}

func start(ctx context.Context, db *dynamotest.DB) error {
	s, err := service.Start(ctx, db.Client(), service.ServerConfig{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return s.Close()
}
