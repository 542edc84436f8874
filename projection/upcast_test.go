package projection_test

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

// PaidTwice is an old event that stands for two deposits.
type PaidTwice struct{ First, Second int }

func (PaidTwice) EventType() string { return "paid-twice" }

// Cleared is an old event that has no effect any more.
type Cleared struct{}

func (Cleared) EventType() string { return "cleared" }

// deposit is Deposited as the aggregate defines it.
type deposit struct{ Deposited }

func (deposit) Apply(*struct{}) {}

func accounts() aggregate.Definition[struct{}] {
	return aggregate.Define[struct{}](topic, deposit{}).WithUpcasters(
		aggregate.Split("paid-twice", func(old PaidTwice) ([]deposit, error) {
			return []deposit{{Deposited{old.First}}, {Deposited{old.Second}}}, nil
		}),
		aggregate.Rename("paid", "deposited"),
		aggregate.Drop("cleared"),
	)
}

// LegacyDeposit is an earlier form of Deposited.
type LegacyDeposit struct{ Amount int }

func (LegacyDeposit) EventType() string { return "paid" }

func TestReactionsGetEventsOfOldTypesAsThoseOfToday(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, LegacyDeposit{1}, Deposited{10}, Cleared{}, Noted{})
	p, err := projection.New(w.client, projection.Config{Definitions: []aggregate.AnyDefinition{accounts()}},
		projection.On(func(_ context.Context, e Deposited, r *journal.Record) ([]projection.Write, error) {
			assert.Equal(t, "deposited", r.EventType)
			return []projection.Write{projection.Update(add(r.Aggregate.Value, e.Amount))}, nil
		}),
	)
	require.NoError(t, err)
	sub := w.consume(subscriber.Config{}, p.Handle)
	eventually(t, "all count", func() bool { return w.total("x") == 11 && p.Stats().Ignored == 2 })
	require.NoError(t, sub.Close())
	assert.EqualValues(t, 2, p.Stats().Applied, "stored events")
}

func TestAnEventThatIsSplitWritesWithAllItsParts(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, PaidTwice{1, 2})
	p, err := projection.New(w.client, projection.Config{Definitions: []aggregate.AnyDefinition{accounts()}},
		projection.On(func(_ context.Context, e Deposited, r *journal.Record) ([]projection.Write, error) {
			return []projection.Write{projection.Update(add([]string{"", "first", "second"}[e.Amount], e.Amount))}, nil
		}),
	)
	require.NoError(t, err)
	sub := w.consume(subscriber.Config{}, p.Handle)
	eventually(t, "both parts are written", func() bool { return w.total("first") == 1 && w.total("second") == 2 })
	require.NoError(t, sub.Close())
}

func TestARunAddsUpThePartsOfItsEvents(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, Cleared{}, PaidTwice{1, 2}, LegacyDeposit{4}, Cleared{}, Deposited{8}, PaidTwice{16, 32})
	p := newTotals(t, w.client, projection.Config{Definitions: []aggregate.AnyDefinition{accounts()}})
	sub := w.consume(subscriber.Config{}, p.Handle)
	eventually(t, "all count", func() bool { return w.total("x") == 63 })
	require.NoError(t, sub.Close())
	assert.Equal(t, projection.Stats{Applied: 4, Ignored: 2}, p.Stats())
}

func TestDefinitionsThatCannotBeUsedAreRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, definitions := range map[string][]aggregate.AnyDefinition{
		"nil":     {nil},
		"twice":   {accounts(), accounts()},
		"invalid": {aggregate.Definition[struct{}]{}},
	} {
		_, err := projection.New(w.client, projection.Config{Definitions: definitions})
		require.ErrorAs(t, err, new(*projection.ConfigError), name)
	}
}

func TestAnEventThatCannotBeUpcastWaits(t *testing.T) {
	t.Parallel()
	w := setup(t)
	broken := aggregate.Define[struct{}](topic, deposit{}).WithUpcasters(
		aggregate.Split("paid", func(LegacyDeposit) ([]deposit, error) { return nil, assert.AnError }),
	)
	w.write("x", 0, LegacyDeposit{1}, Deposited{2})
	failed := make(chan error, 2)
	p := newTotals(t, w.client, projection.Config{Definitions: []aggregate.AnyDefinition{broken}})
	sub := w.consume(subscriber.Config{}, func(msg *message.Message) error {
		err := p.Handle(msg)
		select {
		case failed <- err:
		default:
		}
		return err
	})
	require.ErrorAs(t, <-failed, new(*aggregate.UpcastError))
	require.ErrorIs(t, <-failed, assert.AnError, "again")
	require.NoError(t, sub.Close())
	assert.Zero(t, w.total("x"))
}

// doubling decodes amounts as twice their value.
type doubling struct{ aggregate.Codec }

func (c doubling) Unmarshal(data []byte, v any) error {
	err := c.Codec.Unmarshal(data, v)
	if e, ok := v.(*Deposited); ok {
		e.Amount *= 2
	}
	return err
}

func TestEventsAreDecodedByTheCodecOfTheirDefinition(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, Deposited{1})
	definition := accounts().WithCodec(doubling{aggregate.JSON})
	p := newTotals(t, w.client, projection.Config{Definitions: []aggregate.AnyDefinition{definition}})
	sub := w.consume(subscriber.Config{}, p.Handle)
	eventually(t, "it counts double", func() bool { return w.total("x") == 2 })
	require.NoError(t, sub.Close())
}
