package service_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/examples/planningpoker/service"
)

// patience limits a failing test. It is not a claim about speed.
const patience = 2 * time.Minute

// promptly is shorter than the time in which a router that does not run closes.
const promptly = 25 * time.Second

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
	case <-time.After(promptly):
		assert.Fail(t, "it must not hang")
	}
}

func TestAServerStartsOnceTheDatabaseAnswers(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	_, err := service.Open(t.Context(), db.Client(), service.Config{})
	require.NoError(t, err)
	fault := db.Inject(dynamotest.InternalError(), dynamotest.Table("OperationCheckpoint"), dynamotest.On("GetItem", "PutItem", "Query", "UpdateItem"))
	defer fault.Remove()
	ended := make(chan error, 1)

	go func() { ended <- start(t.Context(), db) }()
	require.Eventually(t, func() bool { return fault.Fired() > 3 }, patience, time.Millisecond, "the consumer must try again")
	fault.Remove()

	select {
	case err := <-ended:
		assert.NoError(t, err)
	case <-time.After(patience):
		assert.Fail(t, "it must start")
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
	case <-time.After(promptly):
		assert.Fail(t, "it must not hang")
	}
}

func TestAServerWhoseConsumerEndsIsToldSo(t *testing.T) {
	t.Parallel()
	s, err := service.Start(t.Context(), dynamotest.New(t).Client(), service.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)

	require.NoError(t, s.Ready(t.Context()))

	require.NoError(t, s.Router().Close())

	require.EqualError(t, s.Wait(), "handlers: has ended by itself")
	require.ErrorIs(t, s.Ready(t.Context()), millrace.ErrNotRunning)
	require.EqualError(t, s.Close(), "handlers: has ended by itself")
}

func TestProcessesServeOrConsumeAlone(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t).Client()
	run := func(does func(*service.Service) error) *service.Service {
		s, err := service.Open(t.Context(), db, service.Config{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		require.NoError(t, does(s))
		stop, err := s.Start(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, stop()) })
		return s
	}
	var url string
	web := run(func(s *service.Service) (err error) {
		url, err = s.Listen(t.Context())
		return err
	})
	consumer := run(func(s *service.Service) error {
		_, err := s.Consume(service.ViewGroup)
		return err
	})

	const id = "01J00000000000000000000RXM"
	opened, err := web.Rooms.Execute(t.Context(), id, room.Open("Sprint 12", "", []string{"1", "2"}, time.Hour, time.Now()))
	require.NoError(t, err)
	wait, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, web.WaitShown(wait, id, opened.Version))

	require.NoError(t, web.Ready(t.Context()))
	require.NoError(t, consumer.Ready(t.Context()))
	reply, err := http.Get(url + "/rooms/" + id)
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	assert.Equal(t, http.StatusOK, reply.StatusCode)
}

func start(ctx context.Context, db *dynamotest.DB) error {
	s, err := service.Start(ctx, db.Client(), service.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return s.Close()
}
