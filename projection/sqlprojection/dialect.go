package sqlprojection

import (
	"strconv"
	"strings"
)

// Dialect names the SQL dialect of a database.
type Dialect string

// Dialects of SQL.
const (
	SQLite Dialect = "sqlite" // from 3.24
	// Version 9.5 or later, and databases with the same dialect.
	PostgreSQL Dialect = "postgresql"
	// Version 5.7 or later with InnoDB, and MariaDB 10.2 or later.
	MySQL Dialect = "mysql"
)

// statements are the SQL statements of a store, in its dialect. Those with a key end with its four
// parts; claim begins with them.
type statements struct {
	create, exists, claim, read, advance string
}

func (c Config) statements() statements {
	s := statements{
		create: `CREATE TABLE IF NOT EXISTS {table} (
	consumer_group {text512} NOT NULL,
	generation     {integer} NOT NULL,
	aggregate_type {text1003} NOT NULL,
	aggregate_id   {text1003} NOT NULL,
	epoch          {integer} NOT NULL,
	position       {integer},
	PRIMARY KEY (consumer_group, generation, aggregate_type, aggregate_id)
)`,
		exists: `SELECT 1 FROM {table} WHERE 1 = 0`,
		claim: `INSERT INTO {table} AS p (consumer_group, generation, aggregate_type, aggregate_id, epoch) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (consumer_group, generation, aggregate_type, aggregate_id) DO UPDATE SET epoch = {greatest}(p.epoch, excluded.epoch)`,
		read: `SELECT epoch, position FROM {table} WHERE {key}`,
		// A new position always differs from the old one, so each database counts the row, even if
		// it counts only rows that changed.
		advance: `UPDATE {table} SET position = ? WHERE epoch = ? AND COALESCE(position, 0) = ? AND {key}`,
	}
	words := map[string]string{
		"{table}": c.Table, "{integer}": "BIGINT", "{greatest}": "GREATEST", "{text512}": "TEXT", "{text1003}": "TEXT",
		"{key}": "consumer_group = ? AND generation = ? AND aggregate_type = ? AND aggregate_id = ?",
	}
	switch c.Dialect {
	case SQLite:
		words["{integer}"], words["{greatest}"] = "INTEGER", "max"
	case MySQL:
		// MySQL compares texts without regard to case, and a key needs columns of a limited length.
		words["{text512}"], words["{text1003}"] = "VARBINARY(512)", "VARBINARY(1003)"
		s.claim = `INSERT INTO {table} (consumer_group, generation, aggregate_type, aggregate_id, epoch) VALUES (?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE epoch = GREATEST(epoch, VALUES(epoch))`
	}
	for _, statement := range []*string{&s.create, &s.exists, &s.claim, &s.read, &s.advance} {
		for word, text := range words {
			*statement = strings.ReplaceAll(*statement, word, text)
		}
		if c.Dialect == PostgreSQL {
			*statement = numbered(*statement)
		}
	}
	return s
}

// numbered replaces each ? by $1 and so on.
func numbered(statement string) string {
	parts := strings.Split(statement, "?")
	for i := range parts[1:] {
		parts[i] += "$" + strconv.Itoa(i+1)
	}
	return strings.Join(parts, "")
}
