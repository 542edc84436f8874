//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/dynamolocal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/test/draw"
)

// memberEnv holds the configuration of a member, as JSON. A process with this environment variable
// is a member.
const memberEnv = "MILLRACE_CHAOS_MEMBER"

// Names of the groups, which are also the roles of their members.
const (
	plain      = "plain"
	projecting = "projection"
)

// lateTransactions is the fraction of a projection's transactions that are delayed on their way,
// for up to two leases. Requests for leases are not delayed.
const lateTransactions = 1.0 / 30

// member is one consumer process.
type member struct {
	Name      string
	Group     string
	Log       string
	Endpoint  string
	AccessKey string
	Seed      uint64
	Lease     time.Duration
	Fault     Fault
}

// MemberMain runs a member, if [Run] has started this process as one. It returns the exit code, and
// true. In any other process it returns false and does nothing. Programs that call Run call it
// first in main, tests in TestMain.
func MemberMain(stderr io.Writer) (code int, isMember bool) {
	spec := os.Getenv(memberEnv)
	if spec == "" {
		return 0, false
	}
	var m member
	if err := json.Unmarshal([]byte(spec), &m); err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", memberEnv, err)
		return 2, true
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := m.run(ctx, stderr); err != nil {
		_, _ = fmt.Fprintf(stderr, "member %s: %v\n", m.Name, err)
		return 1, true
	}
	return 0, true
}

// run consumes until ctx ends.
func (m member) run(ctx context.Context, stderr io.Writer) error {
	notes, err := openLog(m.Log, m.Name)
	if err != nil {
		return err
	}
	if err := notes.write(entry{Kind: up}); err != nil {
		return err
	}
	watch := newWatch(notes, m.Lease/4)
	var watching sync.WaitGroup
	watching.Add(1)
	watchCtx, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer watching.Done()
		watch.schedule(watchCtx)
	}()
	defer watching.Wait()
	defer stopWatching()

	if err := m.consume(ctx, notes, watch, stderr); err != nil {
		return err
	}
	if err := watch.failed(); err != nil {
		return err
	}
	return errors.Join(notes.write(entry{Kind: closed}), notes.close())
}

func (m member) consume(ctx context.Context, notes *log, watch *watch, stderr io.Writer) error {
	client := watch.client(dynamolocal.NewClient(m.Endpoint, m.AccessKey))
	j, err := journal.Open(ctx, client, journal.Config{})
	if ctx.Err() != nil {
		return nil // it was stopped before it began
	}
	if err != nil {
		return err
	}
	logger := watermill.NewSlogLogger(slog.New(slog.NewTextHandler(stderr, nil)))
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: m.Group,
		MaxInFlight:     8,
		NackResendSleep: 150 * time.Millisecond,
		Timing: subscriber.Timing{
			PollInterval: 100 * time.Millisecond, MaxPollInterval: 400 * time.Millisecond,
			TrailingDelay:  trailingDelay,
			CommitInterval: commitInterval,
			BehindAfter:    behindAfter,
			LeaseDuration:  m.Lease,
		},
	}, logger)
	if err != nil {
		return err
	}
	h := &handler{notes: notes, random: draw.New(m.Seed, 0), fault: m.Fault}
	handle := h.plain
	if m.Group == projecting {
		network := dynamotest.OpenProxy(client, dynamotest.WithSeed(m.Seed))
		defer network.Close()
		network.Inject(dynamotest.Congestion(0, 2*m.Lease), dynamotest.On("TransactWriteItems"), dynamotest.Chance(lateTransactions))
		if handle, err = h.projecting(network.Client()); err != nil {
			return err
		}
	}
	router, err := message.NewRouter(message.RouterConfig{}, logger)
	if err != nil {
		return err
	}
	router.AddConsumerHandler(m.Group, topic, sub, handle)
	if err := router.Run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return sub.Close()
}
