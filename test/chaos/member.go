//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
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
)

// memberEnv holds what a member has to know, as JSON. A process that has it in its environment is a
// member.
const memberEnv = "MILLRACE_CHAOS_MEMBER"

// The groups, which are also the names of their members' roles.
const (
	plain      = "plain"
	projecting = "projection"
)

// lateTransactions is the part of a projection's transactions that are held up on their way, for up
// to two leases. Whatever keeps a lease is as quick as ever.
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

// MemberMain is the whole of a process that [Run] has started as a member: it returns the exit
// code, and true. In any other process it returns false and does nothing. Programs that call Run
// ask it first thing in main, tests in TestMain.
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
		return nil // told to end before it began
	}
	if err != nil {
		return err
	}
	logger := watermill.NewSlogLogger(slog.New(slog.NewTextHandler(stderr, nil)))
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: m.Group,
		MaxInFlight:     8,
		NackResendSleep: 150 * time.Millisecond,
		PollInterval:    100 * time.Millisecond, MaxPollInterval: 400 * time.Millisecond,
		TrailingDelay:  trailingDelay,
		CommitInterval: commitInterval,
		BehindAfter:    behindAfter,
		LeaseDuration:  m.Lease,
	}, logger)
	if err != nil {
		return err
	}
	h := &handler{notes: notes, random: rand.New(rand.NewPCG(m.Seed, 0)), fault: m.Fault} //nolint:gosec // a seed decides
	handle := h.plain
	if m.Group == projecting {
		network := dynamotest.OpenProxy(client, dynamotest.Seed(m.Seed))
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
