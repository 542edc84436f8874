package readmodel_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/readmodel"
)

func TestWhoWaitsForAGenerationThatRestsLooksLessAndLessOften(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("a", 0, 50)
	m := w.open(w.config())
	next := mustBegin(t, m)
	w.begins(next, topic, false) // they handle nothing
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var looks []time.Time
	err := m.CatchUp(ctx, next, func(p readmodel.Progress) {
		assert.EqualValues(t, 50, p.Left)
		if looks = append(looks, time.Now()); len(looks) == 5 {
			cancel()
		}
	})
	require.ErrorAs(t, err, new(*readmodel.BehindError))
	require.ErrorIs(t, err, context.Canceled)
	assert.GreaterOrEqual(t, looks[4].Sub(looks[0]), 1400*time.Millisecond, "100, 200, 400 and 800 ms")
}

// slowHeads takes a second for each read of heads, as in a large journal.
type slowHeads struct{ *dynamodb.Client }

const slow = time.Second

func (s slowHeads) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if *in.TableName == "snapshot" {
		select {
		case <-ctx.Done():
		case <-time.After(slow):
		}
	}
	return s.Client.Query(ctx, in, o...)
}

func TestWhereExactLooksAreSlowAnEstimateTellsWhenOneIsDue(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		w.write("a", 0, 50)
		m := w.open(w.config())
		first := mustServing(t, m)
		w.begins(first, topic, false)

		config := w.config()
		config.Journal = testjournal.Open(t, slowHeads{w.client}, journal.Config{})
		var looks []time.Time
		require.NoError(t, w.open(config).CatchUp(t.Context(), first, func(p readmodel.Progress) {
			if looks = append(looks, time.Now()); len(looks) == 1 {
				assert.EqualValues(t, 50, p.Left)
				w.run(m) // only now a process consumes
			}
		}))
		require.Len(t, looks, 2)
		assert.Less(t, looks[1].Sub(looks[0]), 4*2*slow, "when the next one would have been due, four times as long as the heads of two shards took")
	})
}
