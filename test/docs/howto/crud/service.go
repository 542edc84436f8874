package crud

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/repository"
)

// A Service executes the commands, during the migration and after it.
type Service struct {
	DB       *sql.DB
	Accounts *repository.Repository[Account]
	// Shadow executes commands of the table a second time, on a journal of its own. It may be nil.
	Shadow *repository.Repository[Account]
	// Moving moves each account to the journal with its next command.
	Moving bool
}

// Withdraw is a command. Each former command becomes one of this form.
func (s *Service) Withdraw(ctx context.Context, id string, amount int) error {
	if !s.Moving {
		kept, err := withdrawInTable(ctx, s.DB, id, amount)
		if err != nil && !errors.Is(err, ErrNotEnough) {
			return err
		}
		if kept {
			s.compare(ctx, id, Withdraw(amount), err)
			return err
		}
	}
	if err := s.Move(ctx, id); err != nil {
		return err
	}
	_, err := s.Accounts.Execute(ctx, id, Withdraw(amount))
	return err
}

// compare executes a command in the shadow and logs if it ends otherwise than in the table. It
// never fails a request.
func (s *Service) compare(ctx context.Context, id string, decide Decision, want error) {
	if s.Shadow == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if _, err := s.Shadow.Execute(ctx, id, decide); !errors.Is(err, want) {
		slog.Warn("the shadow decides otherwise", "account", id, "table", want, "shadow", err)
	}
}

// ImportAll imports each row of the table that is not in a journal yet.
func ImportAll(ctx context.Context, db *sql.DB, to *repository.Repository[Account]) error {
	for row, err := range Rows(ctx, db) {
		if err != nil {
			return err
		}
		if _, err := to.Execute(ctx, row.ID, Import(row)); err != nil {
			return err
		}
	}
	return nil
}

// Differences returns the ids of the accounts whose rows differ from their aggregates. Look at them
// again after a few seconds: commands were executed meanwhile.
func Differences(ctx context.Context, db *sql.DB, accounts *repository.Repository[Account]) (ids []string, err error) {
	for row, err := range Rows(ctx, db) {
		if err != nil {
			return nil, err
		}
		account, err := accounts.Load(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		if !account.State.Open || account.State.Balance != row.Balance {
			ids = append(ids, row.ID)
		}
	}
	return ids, nil
}

// Move moves an account from the table to the journal. It can be repeated after an error, and run
// in several processes at a time.
func (s *Service) Move(ctx context.Context, id string) error {
	// From now on nothing changes the row until the event Imported is handled.
	_, err := s.DB.ExecContext(ctx, `UPDATE accounts SET kept_in = 'moving' WHERE id = $1 AND kept_in = 'table'`, id)
	if err != nil {
		return err
	}
	row := Row{ID: id}
	err = s.DB.QueryRowContext(ctx, `SELECT balance FROM accounts WHERE id = $1 AND kept_in = 'moving'`, id).Scan(&row.Balance)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // it is a new account, or it was moved before
	}
	if err != nil {
		return err
	}
	_, err = s.Accounts.Execute(ctx, id, Import(row))
	return err
}

// MoveAll moves the accounts that had no command.
func (s *Service) MoveAll(ctx context.Context) error {
	for row, err := range Rows(ctx, s.DB) {
		if err != nil {
			return err
		}
		if err := s.Move(ctx, row.ID); err != nil {
			return err
		}
	}
	return nil
}

// Project keeps the table up to date with the events, for the queries that read it.
func Project(app *millrace.App, store *sqlprojection.Store) error {
	set := func(ctx context.Context, tx *sql.Tx, id string, balance int) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO accounts (id, balance, kept_in) VALUES ($1, $2, 'journal')
			ON CONFLICT (id) DO UPDATE SET balance = $2, kept_in = 'journal'`, id, balance)
		return err
	}
	add := func(ctx context.Context, tx *sql.Tx, id string, amount int) error {
		_, err := tx.ExecContext(ctx, `UPDATE accounts SET balance = balance + $1 WHERE id = $2`, amount, id)
		return err
	}
	return app.ProjectSQL(millrace.Group{Name: "accounts-table", Topics: []string{"account"}}, store,
		sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Imported, r *journal.Record) error {
			return set(ctx, tx, r.Aggregate.Value, e.Balance)
		}),
		sqlprojection.On(func(ctx context.Context, tx *sql.Tx, _ Opened, r *journal.Record) error {
			return set(ctx, tx, r.Aggregate.Value, 0)
		}),
		sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
			return add(ctx, tx, r.Aggregate.Value, e.Amount)
		}),
		sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Withdrawn, r *journal.Record) error {
			return add(ctx, tx, r.Aggregate.Value, -e.Amount)
		}),
	)
}
