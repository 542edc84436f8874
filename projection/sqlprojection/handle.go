package sqlprojection

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/subscriber"
)

// Handle makes a handler that runs apply for each message, in a transaction with the group's
// position. The subscriber's Config.Positions must be this store.
//
// Errors of the handler: subscriber.ErrNoPosition for messages of other subscribers,
// subscriber.ErrFenced when another member of the group has taken over, those of apply,
// [*ConfigError] if there is no apply, and those of the database. After an error nothing has
// happened in the database, unless the reply to COMMIT was lost; that shows when the message comes
// again, and does no harm. The subscriber is told of the error, see [subscriber.SetNackReason].
func (s *Store) Handle(apply func(ctx context.Context, tx *sql.Tx, msg *message.Message) error) message.NoPublishHandlerFunc {
	return reasoned(func(msg *message.Message) error {
		if apply == nil {
			return &ConfigError{"the function given to Handle is nil"}
		}
		return s.once(msg, func(ctx context.Context, tx *sql.Tx) error { return apply(ctx, tx, msg) })
	})
}

// reasoned reports the subscriber of a handler's errors.
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

// once runs apply unless its effects are there already.
func (s *Store) once(msg *message.Message, apply func(context.Context, *sql.Tx) error) error {
	position, ok := subscriber.PositionFromContext(msg.Context())
	if !ok {
		return fmt.Errorf("message %s: %w", msg.UUID, subscriber.ErrNoPosition)
	}
	err := position.CommitIn(msg.Context(), s, func(ctx context.Context, a subscriber.Advance) error {
		if err := s.transact(ctx, a, apply); err != nil {
			return err
		}
		s.stats.applied.Add(1)
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
	defer func() { _ = tx.Rollback() }() // also after a panic; after Commit it does nothing
	if err := s.AdvanceIn(ctx, tx, a); err != nil {
		return err
	}
	if err := apply(ctx, tx); err != nil {
		return err
	}
	err = tx.Commit()
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		err = ctx.Err() // which is why database/sql has rolled back
	}
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
