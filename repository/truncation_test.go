package repository_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// truncates stands for another process: it writes two events with a snapshot each and removes the
// events before the last.
func (s store) truncates(t *testing.T, id string) {
	t.Helper()
	repo := open(t, s.direct).accounts(t, repository.Config{Snapshots: repository.Every(1)})
	a, err := repo.Execute(context.Background(), id, Deposit(1))
	require.NoError(t, err)
	a, err = repo.Save(context.Background(), a, Events{Deposited{1}})
	require.NoError(t, err)
	require.NoError(t, s.journal.Truncate(context.Background(), a.ID, a.Version, journal.RemoveOptions{}))
}

// afterHead calls act once, between the next read of a head and the next request.
func afterHead(s store, act func()) {
	s.proxy.Inject(dynamotest.PauseReply(func(context.Context) { act() }), dynamotest.On("GetItem"), dynamotest.Times(1))
}

func TestWhatIsKeptServesUntilItsNextEventsAreTruncated(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		for name, test := range map[string]struct {
			load func(*repository.Repository[Account], string) (repository.Aggregate[Account], error)
			want int
		}{
			"Load": {
				func(r *repository.Repository[Account], id string) (repository.Aggregate[Account], error) {
					return r.Load(t.Context(), id)
				}, 3,
			},
			"Execute": {
				func(r *repository.Repository[Account], id string) (repository.Aggregate[Account], error) {
					return r.Execute(t.Context(), id, Deposit(1))
				}, 4,
			},
			"Execute, refused by the kept state": {
				func(r *repository.Repository[Account], id string) (repository.Aggregate[Account], error) {
					return r.Execute(t.Context(), id, Withdraw(3))
				}, 0,
			},
		} {
			repo := s.accounts(t, repository.Config{Cache: 10})
			mustExecute(t, repo, name, Deposit(1))
			s.truncates(t, name)

			a, err := test.load(repo, name)

			require.NoError(t, err, name)
			assert.Equal(t, test.want, a.State.Balance, name)
		}
	})
}

func TestATruncationBetweenHeadAndEventsIsNoError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		load func(*repository.Repository[Account]) (repository.Aggregate[Account], error)
		want int
	}{
		"Load": {
			func(r *repository.Repository[Account]) (repository.Aggregate[Account], error) {
				return r.Load(t.Context(), "42")
			}, 5,
		},
		"LoadAtTime": {
			func(r *repository.Repository[Account]) (repository.Aggregate[Account], error) {
				return r.LoadAtTime(t.Context(), "42", time.Now().Add(time.Hour))
			}, 5,
		},
		"Execute": {
			func(r *repository.Repository[Account]) (repository.Aggregate[Account], error) {
				return r.Execute(t.Context(), "42", Deposit(1))
			}, 6,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayout(t, func(t *testing.T, s store) {
				repo := s.accounts(t, repository.Config{Snapshots: repository.Never})
				for range 3 {
					mustExecute(t, repo, "42", Deposit(1))
				}
				afterHead(s, func() { s.truncates(t, "42") })

				a, err := test.load(repo)

				require.NoError(t, err)
				assert.Equal(t, test.want, a.State.Balance)
			})
		})
	}
}

func TestADeletionBetweenHeadAndEventsIsReportedAsOne(t *testing.T) {
	t.Parallel()
	for name, load := range map[string]func(*repository.Repository[Account]) error{
		"Load": func(r *repository.Repository[Account]) error { _, err := r.Load(t.Context(), "42"); return err },
		"LoadAtVersion": func(r *repository.Repository[Account]) error {
			_, err := r.LoadAtVersion(t.Context(), "42", 2)
			return err
		},
		"LoadAtTime": func(r *repository.Repository[Account]) error {
			_, err := r.LoadAtTime(t.Context(), "42", time.Now())
			return err
		},
		"Execute": func(r *repository.Repository[Account]) error {
			_, err := r.Execute(t.Context(), "42", Deposit(1))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayout(t, func(t *testing.T, s store) {
				repo := s.accounts(t, repository.Config{Snapshots: repository.Never})
				for range 3 {
					mustExecute(t, repo, "42", Deposit(1))
				}
				afterHead(s, func() {
					require.NoError(t, s.journal.Delete(context.Background(), account("42"), 3, journal.RemoveOptions{}))
				})

				require.ErrorAs(t, load(repo), new(*journal.DeletedError))
			})
		})
	}
}

func TestATruncationThatTheHeadToldOfIsNotReadAgain(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.truncates(t, "42")
	s.calls.Reset()

	_, err := s.accounts(t, repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true}).Load(t.Context(), "42")

	var truncated *journal.TruncatedError
	require.ErrorAs(t, err, &truncated)
	assert.EqualValues(t, 2, truncated.Before)
	assert.Len(t, s.calls.Calls("GetItem"), 2, "the head, and once more by the journal")
}
