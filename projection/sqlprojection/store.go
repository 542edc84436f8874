package sqlprojection

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/history"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

// Store keeps the positions of consumer groups in a table. Set it as Positions of a
// subscriber.Config. It is safe for concurrent use. One store is enough for any number of groups
// and topics of a journal.
type Store struct {
	db      *sql.DB
	config  Config
	history history.History
	sql     statements
	stats   counters
}

type counters struct{ applied, ignored atomic.Uint64 }

func (c *counters) read() projection.Stats {
	return projection.Stats{Applied: c.applied.Load(), Ignored: c.ignored.Load()}
}

// Stats returns the counts of all handlers of the store since it was made. Applied counts events
// whose transactions were committed, and Ignored events without a reaction in [Store.React].
// Dropped is always 0. An event whose commit is not known to have succeeded, because the reply was
// lost, is not counted.
func (s *Store) Stats() projection.Stats {
	return s.stats.read()
}

var _ subscriber.PositionStore = (*Store)(nil)

// New returns a store. Errors: [*ConfigError].
func New(db *sql.DB, config Config) (*Store, error) {
	if db == nil {
		return nil, &ConfigError{"the database is nil: open one with sql.Open"}
	}
	if err := config.validate(); err != nil {
		return nil, err
	}
	config.setDefaults()
	today, err := history.New(config.Codec, config.Definitions)
	if err != nil {
		return nil, &ConfigError{err.Error()}
	}
	return &Store{db: db, config: config, history: today, sql: config.statements()}, nil
}

// Schema returns the statement that creates the table of positions if it does not exist, for
// programs that create their tables by migrations.
func (s *Store) Schema() string { return s.sql.create }

// CreateTable creates the table of positions if it does not exist.
func (s *Store) CreateTable(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, s.sql.create)
	if err == nil {
		return nil
	}
	// If several programs create the table at the same time, PostgreSQL fails all except one. It
	// also fails a program that may not create tables.
	if _, missing := s.db.ExecContext(ctx, s.sql.exists); missing == nil {
		return nil
	}
	return fmt.Errorf("create table %s: %w", s.config.Table, err)
}

// Claim makes epoch the only one that may advance the position, and returns the position, if there
// is one. It executes two statements. It waits for an open transaction that has moved the position.
//
// Errors: subscriber.ErrFenced if a newer epoch has claimed the position before, and those of the
// database.
func (s *Store) Claim(ctx context.Context, group subscriber.GroupKey, id aggregate.ID, epoch uint64) (position uint64, found bool, err error) {
	if _, err := s.db.ExecContext(ctx, s.sql.claim, append(key(group, id), int64(epoch))...); err != nil {
		return 0, false, fmt.Errorf("claim position on %s: %w", id, err)
	}
	// An older epoch cannot move the position any more, so reading it needs no transaction.
	has, err := s.read(ctx, group, id)
	if err == nil && has.epoch > epoch {
		err = subscriber.ErrFenced
	}
	if err != nil {
		return 0, false, fmt.Errorf("claim position on %s: %w", id, err)
	}
	return has.position, has.found, nil
}

// Advance moves a claimed position. It executes one statement.
//
// Errors: subscriber.ErrFenced if another epoch has claimed the position or it is not at from, and
// those of the database.
func (s *Store) Advance(ctx context.Context, group subscriber.GroupKey, id aggregate.ID, epoch, from, to uint64) error {
	moved, err := s.advance(ctx, s.db, group, id, epoch, from, to)
	if err == nil && !moved {
		var has row
		has, err = s.read(ctx, group, id)
		if err == nil && has.found && has.epoch == epoch && has.position == to {
			return nil // the reply to an earlier attempt was lost
		}
		if err == nil || errors.Is(err, sql.ErrNoRows) {
			err = subscriber.ErrFenced
		}
	}
	if err != nil {
		return fmt.Errorf("advance position on %s from %d to %d: %w", id, from, to, err)
	}
	return nil
}

// Position returns the committed position, if there is one, and changes nothing. It executes one
// statement. It is for groups.WithPositions.
//
// Errors: those of the database.
func (s *Store) Position(ctx context.Context, group subscriber.GroupKey, id aggregate.ID) (position uint64, found bool, err error) {
	has, err := s.read(ctx, group, id)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, false, fmt.Errorf("read position on %s: %w", id, err)
	}
	return has.position, has.found, nil
}

// Tx is the part of a transaction that [Store.AdvanceIn] uses, such as a *sql.Tx.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// AdvanceIn moves the position in a transaction of the caller, inside the function that is passed
// to subscriber.Position.CommitIn with this store. Make it the first statement, for the reasons in
// the package overview. [Store.Handle] does all of this.
//
// Errors: subscriber.ErrFenced if another epoch has claimed the position or it is not at From, and
// those of the database. After any error, roll back.
func (s *Store) AdvanceIn(ctx context.Context, tx Tx, a subscriber.Advance) error {
	moved, err := s.advance(ctx, tx, a.Group, a.Aggregate, a.Epoch, a.From, a.To)
	if err == nil && !moved {
		err = subscriber.ErrFenced
	}
	if err != nil {
		return fmt.Errorf("advance position on %s from %d to %d: %w", a.Aggregate, a.From, a.To, err)
	}
	return nil
}

func (s *Store) advance(ctx context.Context, tx Tx, group subscriber.GroupKey, id aggregate.ID, epoch, from, to uint64) (moved bool, err error) {
	args := append([]any{int64(to), int64(epoch), int64(from)}, key(group, id)...)
	result, err := tx.ExecContext(ctx, s.sql.advance, args...)
	if err != nil {
		return false, err
	}
	rows, err := result.RowsAffected()
	return rows == 1, err
}

type row struct {
	epoch, position uint64
	found           bool // there is a position
}

func (s *Store) read(ctx context.Context, group subscriber.GroupKey, id aggregate.ID) (row, error) {
	var epoch int64
	var position sql.NullInt64
	err := s.db.QueryRowContext(ctx, s.sql.read, key(group, id)...).Scan(&epoch, &position)
	return row{epoch: uint64(epoch), position: uint64(position.Int64), found: position.Valid}, err
}

func key(group subscriber.GroupKey, id aggregate.ID) []any {
	return []any{group.Name, int64(group.Resets), id.Type, id.Value}
}
