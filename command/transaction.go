package command

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"

	"github.com/millrace-dev/millrace/repository"
)

// TransactionRoute adds the aggregates of a command to a transaction, with
// [repository.Repository.AddTo], and returns the decision to execute on them.
type TransactionRoute[C any] func(tx *repository.Transaction, command *C) (decide func() error)

// TransactionHandler is like [Handler], for commands that are decided over several aggregates, of
// the same or of different types. All of their events are written, or none:
//
//	transfer := func(tx *repository.Transaction, t *Transfer) func() error {
//		from, to := accounts.AddTo(tx, t.From), accounts.AddTo(tx, t.To)
//		return func() error {
//			if from.State.Balance < t.Amount {
//				return ErrInsufficientFunds
//			}
//			from.Append(Withdrawn{t.Amount})
//			to.Append(Deposited{t.Amount})
//			return nil
//		}
//	}
//	err := app.HandleCommands(command.TransactionHandler("transfer", transfer))
//
// A command takes effect once in the whole journal, whatever its aggregates are. It is refused if
// one of them was deleted, if the key of one was destroyed, or if it names an aggregate twice
// ([*repository.SameParticipantError]). Errors of the handler: [ErrNoID], and those of
// [repository.Transaction.Execute] and of [OnRefused].
func TransactionHandler[C any](name string, route TransactionRoute[C], options ...Option[C]) cqrs.CommandHandler {
	return newHandler(name, options, func(ctx context.Context, command *C, given []repository.Option) (ids []string, err error) {
		var tx repository.Transaction
		err = tx.Execute(ctx, route(&tx, command), given...)
		for _, r := range tx.Results() {
			ids = append(ids, r.ID.Value)
		}
		return ids, err
	})
}
