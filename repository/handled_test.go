package repository_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/handled"
	"github.com/millrace-dev/millrace/repository"
)

// handlerOf returns a context as the subscriber's messages have it.
func handlerOf(ctx context.Context, id aggregate.ID, number uint64) context.Context {
	return context.WithValue(ctx, handled.Key{}, handled.Event{Table: "journal", Aggregate: id, Number: number})
}

// An index shows the event before the head shows the transaction that has written it.
func TestTheHandlerOfAnEventFindsItInItsAggregate(t *testing.T) {
	for name, handle := range map[string]func(ctx context.Context, r *repository.Repository[Account], id string) error{
		"Load": func(ctx context.Context, r *repository.Repository[Account], id string) error {
			a, err := r.Load(ctx, id)
			if err == nil && a.State.Balance != 30 {
				err = fmt.Errorf("the balance is %d", a.State.Balance)
			}
			return err
		},
		"LoadAt": func(ctx context.Context, r *repository.Repository[Account], id string) error {
			_, err := r.LoadAt(ctx, id, 1)
			return err
		},
		"Execute": func(ctx context.Context, r *repository.Repository[Account], id string) error {
			_, err := r.Execute(ctx, id, Withdraw(30))
			return err
		},
		"Parts": func(ctx context.Context, r *repository.Repository[Account], id string) error {
			var parts repository.Parts
			from := r.Part(&parts, id)
			return parts.Execute(ctx, func() error {
				if from.State.Balance < 30 {
					return ErrInsufficientFunds
				}
				from.Append(Withdrawn{30})
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachInMemory(t, func(t *testing.T, db *dynamotest.DB, s store) {
				writer, direct := s.accounts(t, repository.Config{}), open(t, s.direct)
				for i, reader := range []*repository.Repository[Account]{
					direct.accounts(t, repository.Config{}), direct.accounts(t, repository.Config{Cache: 10}),
				} {
					for n := range 10 { // as what shows first is drawn at random
						id := fmt.Sprintf("%s-%d-%d", name, i, n)
						whileTorn(t, db, func() {
							assert.NoError(t, handle(handlerOf(t.Context(), account(id), 1), reader, id))
						}, func() { endow(t, writer, id, 30) })
					}
				}
			})
		})
	}
}

// What an event leads to may come to its aggregate by way of others, without its context.
func TestACommandIsNotRefusedForAStateThatATransactionIsReplacing(t *testing.T) {
	for name, handle := range map[string]func(ctx context.Context, r *repository.Repository[Account], id string, command repository.Option) error{
		"Execute": func(ctx context.Context, r *repository.Repository[Account], id string, command repository.Option) error {
			_, err := r.Execute(ctx, id, Withdraw(30), command)
			return err
		},
		"Parts": func(ctx context.Context, r *repository.Repository[Account], id string, command repository.Option) error {
			var parts repository.Parts
			from := r.Part(&parts, id)
			return parts.Execute(ctx, func() error {
				if from.State.Balance < 30 {
					return ErrInsufficientFunds
				}
				from.Append(Withdrawn{30})
				return nil
			}, command)
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachInMemory(t, func(t *testing.T, db *dynamotest.DB, s store) {
				writer, direct := s.accounts(t, repository.Config{}), open(t, s.direct)
				for i, reader := range []*repository.Repository[Account]{
					direct.accounts(t, repository.Config{}), direct.accounts(t, repository.Config{Cache: 10}),
				} {
					for n := range 10 {
						id := fmt.Sprintf("%s-%d-%d", name, i, n)
						whileTorn(t, db, func() {
							assert.NoError(t, handle(t.Context(), reader, id, repository.CommandID(id+"/1")))
						}, func() { endow(t, writer, id, 30) })
						require.ErrorIs(t, handle(t.Context(), reader, id+"-none", repository.CommandID(id+"/2")), ErrInsufficientFunds)
						whileTorn(t, db, func() {
							assert.NoError(t, handle(t.Context(), reader, id, repository.CommandID(id+"/3")), "its state is in the cache")
						}, func() { endow(t, writer, id, 30) })
					}
				}
			})
		})
	}
}

// whileTorn runs do while a part of the transaction of write shows. Write goes on when do has ended
// or waits.
func whileTorn(t *testing.T, db *dynamotest.DB, do, write func()) {
	t.Helper()
	var doing sync.WaitGroup
	tear := db.Inject(dynamotest.Tear(func(context.Context) {
		ended := make(chan struct{})
		doing.Add(1)
		go func() {
			defer doing.Done()
			defer close(ended)
			do()
		}()
		select {
		case <-ended:
		case <-time.After(20 * time.Millisecond): // it waits
		}
	}), dynamotest.Times(1))
	write()
	tear.Remove()
	doing.Wait()
}

func TestAnEventElsewhereAndOneThatIsGoneAreNotWaitedFor(t *testing.T) {
	eachInMemory(t, func(t *testing.T, _ *dynamotest.DB, s store) {
		accounts := s.accounts(t, repository.Config{})
		endow(t, accounts, "a", 30)
		for _, ctx := range []context.Context{
			handlerOf(t.Context(), account("a"), 1000), // the table was put back from a backup
			handlerOf(t.Context(), account("b"), 1000),
			context.WithValue(t.Context(), handled.Key{}, handled.Event{Table: "another", Aggregate: account("a"), Number: 1000}),
		} {
			a, err := accounts.Load(ctx, "a")
			require.NoError(t, err)
			assert.Equal(t, 30, a.State.Balance)
			_, err = accounts.LoadAt(ctx, "a", a.Version)
			require.NoError(t, err)
		}
		_, err := accounts.Load(handlerOf(t.Context(), account("c"), 1000), "c")
		require.Error(t, err)
	})
}
