package journal_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

func TestTheRowsOfOtherAggregatesAreNeitherLostNorMistakenWhereverAPageEnds(t *testing.T) {
	t.Parallel()
	for seed := range testdb.Seeds(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			s, db := inMemory(t, journal.Config{Layout: journal.Classic, Shards: 1})
			id, own := user("1"), 1+random.IntN(120)
			s.covered(t, id, own)
			others := map[aggregate.ID]int{}
			for range 12 {
				suffix := make([]rune, 1+random.IntN(4))
				for i := range suffix {
					suffix[i] = []rune("0129-/:x~\U0010FFFF")[random.IntN(10)]
				}
				if other := user("1-" + string(suffix)); others[other] == 0 {
					others[other] = 1 + random.IntN(12)
					s.covered(t, other, others[other])
				}
			}
			db.Inject(dynamotest.SmallPages(1+random.IntN(7)), dynamotest.On("Query"))

			var seen []uint64
			_, err := s.Inspect(t.Context(), id, func(r *journal.Record) { seen = append(seen, r.Number) })
			require.NoError(t, err)
			assert.Len(t, seen, own)
			require.NoError(t, s.Delete(t.Context(), id, uint64(own), journal.RemoveOptions{}))
			assert.Empty(t, s.numbers(t, id))
			for other, n := range others {
				assert.Equal(t, numbersFrom(1, n), s.numbers(t, other), "%q", other.Value)
			}
		})
	}
}

func TestRemovalAndInspectionReadLittleOfOtherAggregates(t *testing.T) {
	t.Parallel()
	const pageOf = 20
	for name, c := range map[string]struct {
		suffix string
		most   int // largest number of rows of the other aggregate that are read
	}{
		"not at all where something other than a digit follows": {"u1", 0},
		"to the end of a page where a digit follows":            {"2024", pageOf},
		"and where more than digits follow":                     {"2x", pageOf},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, db := inMemory(t, journal.Config{Layout: journal.Classic, Shards: 1})
			const own, others = 30, 300
			s.covered(t, user("acme"), own)
			s.covered(t, user("acme-"+c.suffix), others)
			db.Inject(dynamotest.SmallPages(pageOf), dynamotest.On("Query"))
			client, read := &meddler{Client: s.client}, 0
			client.query = func(_ int, _ *dynamodb.QueryInput, send func() (*dynamodb.QueryOutput, error)) (*dynamodb.QueryOutput, error) {
				out, err := send()
				if err == nil {
					read += int(out.ScannedCount)
				}
				return out, err
			}
			j := s.through(t, client)

			_, err := j.Inspect(t.Context(), user("acme"), func(*journal.Record) {})
			require.NoError(t, err)
			assert.LessOrEqual(t, read, own+c.most)
			read = 0
			require.NoError(t, j.Delete(t.Context(), user("acme"), own, journal.RemoveOptions{}))
			assert.LessOrEqual(t, read, own+c.most+1, "and the head")
			assert.Equal(t, numbersFrom(1, others), s.numbers(t, user("acme-"+c.suffix)))
		})
	}
}

// With pages of the real size: a Query may begin at a key that does not exist.
func TestAPageThatEndsAmongTheRowsOfAnotherAggregateIsGoneOnBehind(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{Layout: journal.Classic, Shards: 1})
	id, letter, hyphen := user("1"), user("1-2x"), user("1-3-4")
	s.covered(t, id, 40)
	for _, other := range []aggregate.ID{letter, hyphen} {
		for n := range 25 {
			mustAppend(t, s, storage.Commit{
				Aggregate: other, Expected: uint64(n), Events: []storage.Event{{Type: "large", Payload: bytes.Repeat([]byte("x"), 100<<10)}},
			})
		}
	}
	inspected := func(id aggregate.ID) (n int) {
		_, err := s.Inspect(t.Context(), id, func(*journal.Record) { n++ })
		require.NoError(t, err)
		return n
	}
	assert.Equal(t, 40, inspected(id))
	require.NoError(t, s.Delete(t.Context(), id, 40, journal.RemoveOptions{}))
	assert.Zero(t, inspected(id))
	assert.Equal(t, 25, inspected(letter))
	assert.Equal(t, 25, inspected(hyphen))
}

func TestGuardsOfCommandsAreNotReadByRemoval(t *testing.T) {
	t.Parallel()
	s, _ := inMemory(t, journal.Config{Layout: journal.Classic, Shards: 1})
	const commands = 200
	for n := range uint64(commands) {
		mustAppend(t, s, storage.Commit{Aggregate: user("1"), Expected: n, CommandID: fmt.Sprint("command ", n), Events: events(1, 1)})
	}
	client, read := &meddler{Client: s.client}, 0
	client.query = func(_ int, _ *dynamodb.QueryInput, send func() (*dynamodb.QueryOutput, error)) (*dynamodb.QueryOutput, error) {
		out, err := send()
		if err == nil {
			read += int(out.ScannedCount)
		}
		return out, err
	}
	require.NoError(t, s.through(t, client).Delete(t.Context(), user("1"), commands, journal.RemoveOptions{}))
	// About one of six guards is read too, because its digest begins with a digit, as the number in
	// the key of an event does.
	assert.Less(t, read, commands+commands/3)
}

func TestEventsGetTheirTimeToLiveSideBySide(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{})
	const n, atOnce = 100, 16
	s.covered(t, user("1"), n)
	var begun atomic.Int64
	all := make(chan struct{})
	db.Inject(dynamotest.Pause(func(context.Context) {
		if begun.Add(1) == atOnce {
			close(all)
		}
		select {
		case <-all:
		case <-time.After(time.Minute):
		}
	}), dynamotest.On("UpdateItem"), dynamotest.Table(s.Config().Tables.Journal))
	var progress []int
	options := journal.RemoveOptions{After: time.Hour, Progress: func(events int) { progress = append(progress, events) }}
	require.NoError(t, s.Truncate(t.Context(), user("1"), n+1, options))
	assert.Equal(t, []int{n}, progress)
	assert.EqualValues(t, n, begun.Load())
	select {
	case <-all:
	default:
		t.Error("never were 16 under way")
	}
}
