package docs

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// aShop is an App with a group mails on topic account, whose handler gets the event of account 42.
type aShop struct {
	t        *testing.T
	db       *dynamotest.DB
	group    millrace.Group
	failures subscriber.FailurePolicy
	handle   message.NoPublishHandlerFunc
	ready    func() // between the commit of the event and the start
	logged   *logBuffer
}

func newShop(t *testing.T) *aShop {
	t.Helper()
	s := &aShop{t: t, db: dynamotest.New(t), logged: &logBuffer{more: make(chan struct{}, 1)}}
	s.group = millrace.Group{Name: "mails", Topics: []string{"account"}}
	s.handle = func(*message.Message) error { return nil }
	s.ready = func() {}
	return s
}

// start runs the App until the test ends.
func (s *aShop) start() *millrace.App {
	s.t.Helper()
	app, err := millrace.Open(s.t.Context(), s.db.Client(), millrace.Config{
		Journal: journal.Config{Shards: 1, Layout: journal.Packed}, HandlerTimeout: 10 * time.Millisecond,
		Subscriber: func(_ string, c *subscriber.Config) {
			c.NackResendSleep, c.MaxNackResendSleep, c.Failures = time.Millisecond, time.Millisecond, s.failures
		},
		Logger: watermill.NewSlogLogger(slog.New(slog.NewTextHandler(s.logged, nil))),
	})
	require.NoError(s.t, err)
	accounts, err := millrace.Repository(app, deposits, repository.Config{})
	require.NoError(s.t, err)
	require.NoError(s.t, app.Handle(s.group, s.handle))
	testjournal.Execute(s.t, accounts, "42", depositTo())
	s.ready()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = app.Run(ctx) }()
	s.t.Cleanup(func() { cancel(); <-ended })
	return app
}

func fails(*message.Message) error { return errors.New("no such customer") }

func TestThePageOfTroubleshootingHasTheLinesOfTheLog(t *testing.T) {
	t.Parallel()
	page := read(t, "operations/troubleshooting.md")
	deny := func(operation string) func(*aShop) {
		return func(s *aShop) {
			s.ready = func() {
				s.db.Inject(dynamotest.Refuse(&smithy.GenericAPIError{Code: "AccessDeniedException"}), dynamotest.On(operation))
			}
		}
	}
	policy := func(p subscriber.FailurePolicy) func(*aShop) {
		return func(s *aShop) { s.failures, s.handle = p, fails }
	}
	for name, symptom := range map[string]struct {
		cause func(*aShop)
		lines []string
	}{
		"subscribed":                       {func(*aShop) {}, []string{"Starting handler"}},
		"a handler fails":                  {func(s *aShop) { s.handle = fails }, []string{"Handler failed, will deliver the event again"}},
		"parked":                           {policy(subscriber.Park(2)), []string{"Aggregate is parked; its events wait until an operator unparks it"}},
		"skipped":                          {policy(subscriber.Skip(2)), []string{"Event is skipped, with a record of it"}},
		"stopped":                          {policy(subscriber.Stop(2)), []string{"Consumer group is stopped because of an event that keeps failing, until it is resumed"}},
		"deferred":                         {policy(subscriber.Defer(subscriber.Backoff{Pause: time.Minute})), []string{"Event is deferred"}},
		"no permission to read the tail":   {deny("Query"), []string{"Cannot read the tail of the journal, will try again", "access to DynamoDB denied"}},
		"no permission to write positions": {deny("UpdateItem"), []string{"Cannot write a checkpoint, will try again", "access to DynamoDB denied"}},
		"throttled": {func(s *aShop) {
			s.ready = func() { s.db.Inject(dynamotest.Throttle(), dynamotest.On("Query")) }
		}, []string{"Cannot read the tail of the journal, will try again", "throttled: DynamoDB has no capacity left"}},
		"throttled at the start": {func(s *aShop) {
			s.ready = func() {
				throttling := s.db.Inject(dynamotest.Throttle(), dynamotest.Table("checkpoint"))
				time.AfterFunc(5*time.Second, throttling.Remove)
			}
		}, []string{dynamo.SlowStart, "Starting handler"}},
		"no index": {func(s *aShop) {
			s.ready = func() {
				_, err := s.db.Client().UpdateTable(s.t.Context(), &dynamodb.UpdateTableInput{
					TableName: aws.String("journal"), GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
						{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: aws.String("journal-tail-index")}},
					},
				})
				require.NoError(s.t, err)
			}
		}, []string{"Cannot read the tail of the journal, will try again", `table or index missing: "journal" lacks an index`}},
		"a lease that is not renewed": {deny("UpdateItem"), []string{"Cannot renew the lease, will try again", "The lease has ended without a heartbeat"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				s := newShop(t)
				symptom.cause(s)

				s.start()

				for _, line := range symptom.lines {
					s.logged.await(t, line)
					assert.Contains(t, page, line)
				}
			})
		})
	}
}

// Not all causes can be made in a test as short as this one, so these lines are looked up in the
// source.
func TestOtherLinesOnThePageOfTroubleshootingAreInTheSource(t *testing.T) {
	t.Parallel()
	page := read(t, "operations/troubleshooting.md")
	var source strings.Builder
	for _, pattern := range []string{"../*.go", "../subscriber/*.go", "../subscriber/internal/*/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				source.WriteString(read(t, file))
			}
		}
	}
	for _, line := range []string{
		"Events were passed over because they were removed from the journal", "Cannot take over a shard, will try again",
		"Aggregate is blocked, will try again", "Lost a shard", "Event went to the poison queue", "The App handles no commands",
		"Handler has not returned within CloseTimeout", "The group's position is beyond the journal, so the aggregate's next events count as handled", "has ended by itself",
	} {
		assert.Contains(t, page, line)
		assert.Contains(t, source.String(), line)
	}
}

func TestAGroupOnAMisspelledTopicLooksHealthy(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.group.Topics = []string{"acount"}
	app := s.start()
	<-app.Running()

	s.logged.await(t, "Starting handler")
	g, err := app.Groups().Of("mails", "acount").Status(t.Context())
	require.NoError(t, err)
	assert.Empty(t, g.Free())
	lag, err := app.Groups().Of("mails", "acount").Lag(t.Context(), groups.LagOptions{})
	require.NoError(t, err)
	assert.Zero(t, lag.Events)
	assert.NotContains(t, s.logged.String(), "level=ERROR")
	_, err = app.Groups().Of("mails", "account").Status(t.Context())
	require.ErrorIs(t, err, groups.ErrNoGroup)
}

func TestAGroupThatAsksForAnotherTypePassesOverTheEvent(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.group.Subscriber = func(c *subscriber.Config) { c.EventTypes = []string{"account.deposited"} }
	s.handle = func(*message.Message) error { assert.Fail(t, "it is passed over"); return nil }
	app := s.start()

	require.NoError(t, app.Groups().WaitApplied(t.Context(), "mails", aggregate.ID{Type: "account", Value: "42"}, 1))
	assert.NotContains(t, s.logged.String(), "level=ERROR")
}

func TestAHandlerThatIsAddedTooLateIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	app := s.start()
	<-app.Running()

	err := app.Handle(millrace.Group{Name: "late", Topics: []string{"account"}}, s.handle)

	require.ErrorIs(t, err, millrace.ErrStarted)
	assert.Contains(t, read(t, "operations/troubleshooting.md"), "`"+err.Error()+"`")
}

func TestAProgramWithAWrongPrefixFindsNoTables(t *testing.T) {
	t.Parallel()
	_, err := millrace.Open(t.Context(), dynamotest.New(t).Client(), millrace.Config{Prefix: "shop-", ExistingTables: true})

	require.ErrorIs(t, err, journal.ErrTableMissing)
	require.ErrorContains(t, err, `table or index missing: "shop-journal"`)
	assert.Contains(t, read(t, "operations/troubleshooting.md"), `table or index missing: "shop-journal"`)
}

func TestAShutdownNamesWhatHasNotStopped(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	hangs, release := make(chan struct{}), make(chan struct{})
	s.handle = func(*message.Message) error { close(hangs); <-release; return nil }
	app, err := millrace.Open(t.Context(), s.db.Client(), millrace.Config{
		Journal: journal.Config{Layout: journal.Packed, Shards: 1}, StopTimeout: time.Second, HandlerTimeout: time.Minute,
	})
	require.NoError(t, err)
	require.NoError(t, app.Handle(s.group, s.handle))
	writer := testjournal.Repository(t, app.Journal(), deposits, repository.Config{})
	testjournal.Execute(t, writer, "42", depositTo())
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	<-hangs

	err = stop()

	close(release)
	require.ErrorContains(t, err, "not stopped within 1s: subscribers")
	require.ErrorContains(t, err, "in handlers: event 1 of account-42 (")
	assert.Contains(t, read(t, "operations/troubleshooting.md"), "not stopped within 30s: subscribers")
}

// logBuffer holds a log that is written and read at the same time.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // receives after a line was written
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

// await waits until the log contains a line. Quotes in the log count without their escapes.
func (l *logBuffer) await(t *testing.T, line string) {
	t.Helper()
	limit := time.After(time.Minute)
	for !strings.Contains(strings.ReplaceAll(l.String(), `\"`, `"`), line) {
		select {
		case <-l.more:
		case <-limit:
			require.FailNow(t, "no such line in the log: "+line, l.String())
		}
	}
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
