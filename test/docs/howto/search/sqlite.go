package search

import (
	"context"
	"database/sql"
	"strings"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
)

// Schema has the products, and an index of their words. The triggers change the index in the
// transaction that changes a product.
const Schema = `
CREATE TABLE products (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, text TEXT NOT NULL);
CREATE VIRTUAL TABLE words USING fts5 (title, text, content = 'products', content_rowid = 'number');
CREATE TRIGGER words_insert AFTER INSERT ON products BEGIN
	INSERT INTO words (rowid, title, text) VALUES (new.number, new.title, new.text);
END;
CREATE TRIGGER words_delete AFTER DELETE ON products BEGIN
	INSERT INTO words (words, rowid, title, text) VALUES ('delete', old.number, old.title, old.text);
END;
CREATE TRIGGER words_update AFTER UPDATE ON products BEGIN
	INSERT INTO words (words, rowid, title, text) VALUES ('delete', old.number, old.title, old.text);
	INSERT INTO words (rowid, title, text) VALUES (new.number, new.title, new.text);
END;`

// AddSQLite adds the group that keeps the products of a database up to date.
func AddSQLite(app *millrace.App, store *sqlprojection.Store) error {
	return app.ProjectSQL(millrace.Group{Name: "products", Topics: []string{"product"}}, store,
		sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Listed, r *journal.Record) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO products (id, title, text) VALUES (?, ?, ?)", r.Aggregate.Value, e.Title, e.Text)
			return err
		}),
		sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Described, r *journal.Record) error {
			_, err := tx.ExecContext(ctx, "UPDATE products SET text = ? WHERE id = ?", e.Text, r.Aggregate.Value)
			return err
		}),
		sqlprojection.On(func(ctx context.Context, tx *sql.Tx, _ Withdrawn, r *journal.Record) error {
			_, err := tx.ExecContext(ctx, "DELETE FROM products WHERE id = ?", r.Aggregate.Value)
			return err
		}),
	)
}

// Find returns the ids of the products that have all words of a text, the best first.
func Find(ctx context.Context, db *sql.DB, text string) (ids []string, err error) {
	words := strings.Fields(text)
	for i, word := range words {
		words[i] = `"` + strings.ReplaceAll(word, `"`, `""`) + `"` // a word, not an operator
	}
	rows, err := db.QueryContext(ctx, `SELECT id FROM words JOIN products ON products.number = words.rowid
		WHERE words MATCH ? ORDER BY words.rank LIMIT 20`, strings.Join(words, " "))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
