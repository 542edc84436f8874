package groups_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// rival is a member that takes the only shard from a slow operator.
type rival struct {
	store
	rows   *checkpoint.Store
	member uint64
	once   sync.Once
}

var (
	rivals     = checkpoint.Group{Name: group}
	rivalsWork = checkpoint.Key{Group: group, Topic: topic}
)

// newRival returns a group on one shard, whose member is the rival. Aggregate x has three events.
// The operator has its own wire.
func newRival(t *testing.T) (r *rival, operator store, w *wire) {
	t.Helper()
	raw := create(t, 1)
	w = &wire{next: raw.Options().HTTPClient, before: func() {}, after: func() bool { return false }}
	client := dynamodb.New(raw.Options(), func(o *dynamodb.Options) { o.HTTPClient = w })
	r = &rival{store: open(t, raw, journal.Config{})}
	r.rows = checkpoint.New(r.Journal)
	membership, member := checkpoint.NewMembership(1, time.Time{}).Join(checkpoint.Member{})
	_, err := r.rows.ChangeMembership(t.Context(), rivalsWork, checkpoint.Membership{}, membership)
	require.NoError(t, err)
	r.member = member
	r.write(t, "x", 0, 3)
	return r, open(t, client, journal.Config{}), w
}

// takeOver takes the shard, unless it has done so before. It claims x, and checks the position.
func (r *rival) takeOver(t *testing.T, at uint64, work func(epoch uint64)) (did bool) {
	r.once.Do(func() {
		did = true
		membership, err := r.rows.ModifyMembership(context.Background(), rivalsWork, func(now checkpoint.Membership) (checkpoint.Membership, error) {
			return now.Take(r.member, []int{0}), nil
		})
		assert.NoError(t, err)
		epoch := membership.Epochs[0]
		position, _, err := r.rows.Claim(context.Background(), rivals, account("x"), epoch)
		assert.NoError(t, err)
		assert.Equal(t, at, position)
		work(epoch)
	})
	return did
}

// handle moves the position, like a member that has handled events.
func (r *rival) handle(t *testing.T, epoch, from, to uint64) {
	assert.NoError(t, r.rows.Advance(context.Background(), rivals, account("x"), epoch, from, to))
}

// position returns the position of the group in x.
func (r *rival) position(t *testing.T) uint64 {
	position, err := r.Position(context.Background(), group, account("x"))
	assert.NoError(t, err)
	return position
}

// left reports whether no operator is in the membership.
func (r *rival) left(t *testing.T) bool {
	g, err := r.Status(context.Background())
	assert.NoError(t, err)
	return len(g.Members) == 1
}

// wire is the operator's client of the database.
type wire struct {
	next   aws.HTTPClient
	before func() // called before each transaction
	// after is called after each write that succeeds. If it returns true, the reply is lost and the
	// SDK sends the request again.
	after func() (lost bool)
}

// Do sends a request.
func (w *wire) Do(request *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(request.Header.Get("X-Amz-Target"), ".")
	if operation == "TransactWriteItems" {
		w.before()
	}
	response, err := w.next.Do(request)
	writes := operation == "TransactWriteItems" || operation == "UpdateItem"
	if err == nil && writes && response.StatusCode == http.StatusOK && w.after() {
		_ = response.Body.Close()
		return nil, io.ErrUnexpectedEOF
	}
	return response, err
}

func TestAnAggregateIsPutBackOnceWhateverComesBetween(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost bool
		when func(t *testing.T, r *rival) bool
	}{
		"a member takes over when the position was put": {false, func(t *testing.T, r *rival) bool { return r.position(t) == 0 }},
		"the reply to that is lost":                     {true, func(t *testing.T, r *rival) bool { return r.position(t) == 0 }},
		"a member takes over when it was freed":         {false, func(t *testing.T, r *rival) bool { return r.position(t) == 0 && r.left(t) }},
		"the reply to freeing the shard is lost":        {true, func(t *testing.T, r *rival) bool { return r.position(t) == 0 && r.left(t) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, operator, w := newRival(t)
			require.NoError(t, r.ResetAggregate(t.Context(), group, account("x"), 3))
			did := false
			w.after = func() bool {
				if did || !c.when(t, r) {
					return false
				}
				did = r.takeOver(t, 0, func(epoch uint64) { r.handle(t, epoch, 0, 3) })
				return c.lost
			}

			require.NoError(t, operator.ResetAggregate(t.Context(), group, account("x"), 0))

			assert.True(t, did)
			assert.EqualValues(t, 3, r.position(t), "it stays where the member has brought it")
			_, listed, err := r.rows.Listed(t.Context(), checkpoint.Group{Name: group}, account("x"))
			require.NoError(t, err)
			assert.True(t, listed, "the next owner looks at it in any case")
		})
	}
}

func TestARecordOfAnEventThatIsSkippedAfterAResetStays(t *testing.T) {
	t.Parallel()
	r, operator, w := newRival(t)
	require.NoError(t, r.Skip(t.Context(), group, account("x"), 1))
	require.NoError(t, r.Skip(t.Context(), group, account("x"), 2))
	taken := false
	w.after = func() bool {
		if r.position(t) == 0 && !taken {
			taken = r.takeOver(t, 0, func(epoch uint64) {
				r.handle(t, epoch, 0, 1)
				assert.NoError(t, r.rows.SkipTo(context.Background(), rivals, checkpoint.Skipped{
					Aggregate: account("x"), Number: 2, At: time.Now(), Reason: "it fails again", Epoch: epoch,
				}))
			})
		}
		return false
	}

	require.NoError(t, operator.ResetAggregate(t.Context(), group, account("x"), 0))

	records := r.skipped(t)
	require.Len(t, records, 1)
	assert.EqualValues(t, 2, records[0].Number)
	assert.Equal(t, "it fails again", records[0].Reason)
}

func TestASkipThatWasDoneIsNotToldAsRefused(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"a member takes over": false, "the reply to freeing the shard is lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, operator, w := newRival(t)
			did := false
			w.after = func() bool {
				if did || r.position(t) != 1 || lost && !r.left(t) {
					return false
				}
				did = r.takeOver(t, 1, func(epoch uint64) { r.handle(t, epoch, 1, 2) })
				return lost
			}

			require.NoError(t, operator.Skip(t.Context(), group, account("x"), 1))

			assert.True(t, did)
			assert.EqualValues(t, 2, r.position(t))
			assert.Equal(t, []string{"x/1"}, r.skippedNames(t))
		})
	}
}

func TestAnEventThatAMemberHandlesMeanwhileIsNotRecordedAsSkipped(t *testing.T) {
	t.Parallel()
	r, operator, w := newRival(t)
	w.before = func() {
		r.takeOver(t, 0, func(epoch uint64) { r.handle(t, epoch, 0, 1) })
	}

	err := operator.Skip(t.Context(), group, account("x"), 1)

	require.ErrorAs(t, err, new(*groups.NotNextError))
	assert.EqualValues(t, 1, r.position(t))
	assert.Empty(t, r.skipped(t))
}
