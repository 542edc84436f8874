package crud

import (
	"context"
	"database/sql"
	"errors"
	"iter"
)

// Schema is the table of the former application, with the column kept_in. It is added by
// ALTER TABLE accounts ADD COLUMN kept_in TEXT NOT NULL DEFAULT 'table'.
const Schema = `CREATE TABLE accounts (
	id TEXT PRIMARY KEY, balance INTEGER NOT NULL, kept_in TEXT NOT NULL DEFAULT 'table'
)`

// A Row is a row of the table.
type Row struct {
	ID      string
	Balance int
}

// withdrawInTable is the former code, with a condition on kept_in. It reports whether the table
// keeps the account.
func withdrawInTable(ctx context.Context, db *sql.DB, id string, amount int) (kept bool, err error) {
	done, err := db.ExecContext(ctx, `UPDATE accounts SET balance = balance - $1
		WHERE id = $2 AND balance >= $1 AND kept_in = 'table'`, amount, id)
	if err != nil {
		return false, err
	}
	if n, err := done.RowsAffected(); err != nil || n > 0 {
		return true, err
	}
	err = db.QueryRowContext(ctx, `SELECT kept_in = 'table' FROM accounts WHERE id = $1`, id).Scan(&kept)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil // perhaps a new account, whose event is not handled yet
	}
	if kept {
		err = ErrNotEnough
	}
	return kept, err
}

// Rows returns all rows, in pages of 1,000.
func Rows(ctx context.Context, db *sql.DB) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for last := ""; ; {
			page, err := page(ctx, db, last)
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, row := range page {
				if !yield(row, nil) {
					return
				}
				last = row.ID
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

func page(ctx context.Context, db *sql.DB, after string) (page []Row, err error) {
	rows, err := db.QueryContext(ctx, `SELECT id, balance FROM accounts WHERE id > $1 ORDER BY id LIMIT 1000`, after)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var row Row
		if err := rows.Scan(&row.ID, &row.Balance); err != nil {
			return nil, err
		}
		page = append(page, row)
	}
	return page, rows.Err()
}
