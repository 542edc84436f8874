package millrace_test

import (
	"context"
	"maps"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// positions is a store of positions outside of the journal's tables, as an SQL database has.
type positions struct {
	mu sync.Mutex
	at map[aggregate.ID]uint64
}

func (p *positions) Claim(ctx context.Context, g subscriber.GroupKey, id aggregate.ID, _ uint64) (uint64, bool, error) {
	return p.Position(ctx, g, id)
}

func (p *positions) Advance(_ context.Context, _ subscriber.GroupKey, id aggregate.ID, _, _, to uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = maps.Clone(p.at)
	p.at[id] = to
	return nil
}

func (p *positions) Position(_ context.Context, _ subscriber.GroupKey, id aggregate.ID) (uint64, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, found := p.at[id]
	return at, found, nil
}

// During a deployment, another release consumes the generation of a read model in an SQL database.
func TestAPersonIsForgottenByAReleaseThatDoesNotConsumeAGeneration(t *testing.T) {
	t.Parallel()
	db, store := dynamotest.New(t), &positions{at: map[aggregate.ID]uint64{}}
	release := func(form string) (*millrace.App, *repository.Repository[order]) {
		app := open(t, db, personal(t, "order"), subscribing(func(_ string, c *subscriber.Config) { c.Positions = store }))
		repo, err := millrace.Repository(app, orders, repository.Config{})
		require.NoError(t, err)
		_, err = app.ReadModel(t.Context(), readmodel.Config{Name: "names", Topics: []string{"order"}, Forms: []string{form}, Positions: store},
			func(context.Context, readmodel.Generation) ([]projection.Reaction, error) {
				return []projection.Reaction{projection.On(func(context.Context, placed, *journal.Record) ([]projection.Write, error) { return nil, nil })}, nil
			})
		require.NoError(t, err)
		return app, repo
	}
	newer, repo := release("2")
	older, again := release("1")
	start(t, newer)
	start(t, older)
	ada := testjournal.Execute(t, repo, "7", place("Ada"))

	require.NoError(t, older.Forget(t.Context(), ada.ID, ada.Version))

	_, err := again.Load(t.Context(), "7")
	require.ErrorIs(t, err, journal.ErrKeyDestroyed)
}
