package sqlprojection

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/reaction"
	"github.com/millrace-dev/millrace/subscriber"
)

// Handle returns a handler that runs apply for each message, in a transaction with the position of
// the group. The subscriber's Config.Positions must be this store.
//
// Errors of the handler: subscriber.ErrNoPosition for messages of other subscribers,
// subscriber.ErrFenced if another member of the group has taken over, [*ConfigError] if apply is
// nil, and the errors of apply and the database. After an error nothing was changed in the
// database, unless the reply to COMMIT was lost. The handler detects that when the message is
// delivered again, and then acks it without running apply again. It reports the error to the
// subscriber, see [subscriber.SetNackReason].
func (s *Store) Handle(apply func(ctx context.Context, tx *sql.Tx, msg *message.Message) error) message.NoPublishHandlerFunc {
	return reasoned(func(msg *message.Message) error {
		if apply == nil {
			return &ConfigError{"the function passed to Handle is nil"}
		}
		return s.once(msg, new(counters), func(ctx context.Context, tx *sql.Tx) error { return apply(ctx, tx, msg) })
	})
}

// reasoned reports the errors of a handler to the subscriber.
func reasoned(handle message.NoPublishHandlerFunc) message.NoPublishHandlerFunc {
	return func(msg *message.Message) error {
		if msg == nil {
			return fmt.Errorf("nil message: %w", subscriber.ErrNoPosition)
		}
		err := handle(msg)
		subscriber.SetNackReason(msg.Context(), err)
		return err
	}
}

// once runs apply unless its effects were committed before. It counts in the store, and in own.
func (s *Store) once(msg *message.Message, own *counters, apply func(context.Context, *sql.Tx) error) error {
	position, ok := subscriber.PositionFromContext(msg.Context())
	if !ok {
		return reaction.NoPosition(msg)
	}
	err := position.CommitIn(msg.Context(), s, func(ctx context.Context, a subscriber.Advance) error {
		if err := s.transact(ctx, a, apply); err != nil {
			return err
		}
		s.stats.applied.Add(1)
		own.applied.Add(1)
		return nil
	})
	if err != nil {
		id, number, _ := subscriber.AggregateFromContext(msg.Context())
		return fmt.Errorf("apply event %d of %s: %w", number, id, err)
	}
	return nil
}

func (s *Store) transact(ctx context.Context, a subscriber.Advance, apply func(context.Context, *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.config.Isolation})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	// Also after a panic. After Commit it has no effect.
	defer func() { _ = tx.Rollback() }()
	if err := s.AdvanceIn(ctx, tx, a); err != nil {
		return err
	}
	if err := apply(ctx, tx); err != nil {
		return err
	}
	err = tx.Commit()
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		err = ctx.Err() // the reason for which database/sql has rolled back
	}
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
