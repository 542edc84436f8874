package tracing_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/tracing"
)

// Review is the state of a process that waits a minute after a deposit.
type Review struct{ Over bool }

type Begun struct{}

func (Begun) EventType() string { return "review.begun" }
func (Begun) Apply(*Review)     {}

type Ended struct{}

func (Ended) EventType() string { return "review.ended" }
func (Ended) Apply(r *Review)   { r.Over = true }

type CloseReview struct{}

var errReview = errors.New("the review fails")

// reviews send a command a minute after a deposit.
var reviews = process.Define(aggregate.Define[Review]("review", Begun{}, Ended{}),
	process.On(func(_ Deposited, in process.Input) string { return in.Source.Value }, func(_ Review, e Deposited, _ process.Input) (process.Step[Review], error) {
		if e.Amount < 0 {
			return process.Step[Review]{}, errReview
		}
		return process.Record(Begun{}).SetTimeout("end", time.Minute), nil
	}).Starts(),
	process.OnTimeout("end", func(Review, process.Input) (process.Step[Review], error) {
		return process.Record(Ended{}).Send(CloseReview{}), nil
	}),
).EndsWhen(func(r Review) bool { return r.Over })

// broker stores the messages that it receives.
type broker struct {
	mu       sync.Mutex
	messages []*message.Message
}

func (b *broker) Publish(_ string, messages ...*message.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages = append(b.messages, messages...)
	return nil
}
func (*broker) Close() error { return nil }

type reviewed struct {
	*process.Manager[Review]
	broker *broker
	now    time.Time
}

func (w *world) reviews(config tracing.Config) *reviewed {
	w.t.Helper()
	require.NoError(w.t, process.CreateTable(w.t.Context(), w.db.Client(), ""))
	r := &reviewed{broker: &broker{}, now: time.UnixMilli(1_700_000_000_000)}
	var err error
	r.Manager, err = process.New(w.journal, w.db.Client(), reviews, process.Config{
		Middleware: tracing.StepMiddleware(config), Publisher: tracing.NewPublisher(r.broker, config), Now: func() time.Time { return r.now },
		GeneratePublishTopic: func(p cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return "commands", nil },
	})
	require.NoError(w.t, err)
	return r
}

func (w *world) lastOf(m *process.Manager[Review], id string) aggregate.Metadata {
	w.t.Helper()
	review, err := m.Repository().Load(w.t.Context(), id)
	require.NoError(w.t, err)
	for record, err := range w.journal.Events(w.t.Context(), review.ID, review.Version, review.Version) {
		require.NoError(w.t, err)
		return record.Metadata
	}
	return nil
}

func TestTheStepsOfAProcessAndItsTimeoutsAreLinked(t *testing.T) {
	t.Parallel()
	for name, continued := range map[string]bool{"linked": false, "continued": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			config := w.config
			config.ContinueTrace = continued
			m := w.reviews(config)
			w.run(m.Handle, tracing.Middleware(config))
			testjournal.Execute(t, w.accounts, "42", events(Deposited{1}))

			step := w.span("step review")
			requireChild(t, w.span("process account"), step)
			assert.Equal(t, traceparent(step), w.lastOf(m.Manager, "42")["traceparent"])

			m.now = m.now.Add(time.Minute)
			fired, err := m.Fire(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, fired)
			ended := w.named("step review", 2)[1]
			if continued {
				requireChild(t, step, ended)
			} else {
				requireLink(t, step, ended)
			}
			assert.Equal(t, "end", attributesOf(ended)["millrace.process.timeout"])
			assert.Equal(t, traceparent(ended), w.lastOf(m.Manager, "42")["traceparent"])

			sent := w.span("publish commands")
			requireChild(t, ended, sent)
			require.Len(t, m.broker.messages, 1)
			assert.Equal(t, traceparent(sent), m.broker.messages[0].Metadata["traceparent"])
		})
	}
}

func TestASpanSaysWhyAStepFailed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.reviews(w.config)
	msg := message.NewMessage("e1", []byte(`{"Amount":-1}`))
	msg.Metadata = message.Metadata{"name": "account.deposited.v1", "aggregate_type": "account", "aggregate_id": "42"}
	require.ErrorIs(t, m.Handle(msg), errReview)

	step := w.span("step review")
	assert.Equal(t, codes.Error, step.Status().Code)
	assert.Equal(t, "failed", attributesOf(step)["millrace.commit.outcome"])
}
