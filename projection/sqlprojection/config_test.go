package sqlprojection_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
)

type deposited struct{}

func (deposited) EventType() string { return "deposited" }

type event interface{ EventType() string }

func TestAStoreThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	_, err := sqlprojection.New(nil, sqlprojection.Config{Dialect: sqlprojection.SQLite})
	require.ErrorAs(t, err, new(*sqlprojection.ConfigError))
	for name, config := range map[string]sqlprojection.Config{
		"no dialect":      {},
		"unknown dialect": {Dialect: "mumps"},
		"quoted table":    {Dialect: sqlprojection.MySQL, Table: "`positions`"},
		"injected table":  {Dialect: sqlprojection.MySQL, Table: "positions; DROP TABLE orders"},
		"three parts":     {Dialect: sqlprojection.PostgreSQL, Table: "a.b.c"},
		"trailing line":   {Dialect: sqlprojection.PostgreSQL, Table: "positions\n"},
	} {
		_, err := sqlprojection.New(&sql.DB{}, config)
		require.ErrorAs(t, err, new(*sqlprojection.ConfigError), name)
	}
	_, err = sqlprojection.New(&sql.DB{}, sqlprojection.Config{Dialect: sqlprojection.PostgreSQL, Table: "billing.positions_2"})
	require.NoError(t, err)
}

func TestReactionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	store, err := sqlprojection.New(&sql.DB{}, sqlprojection.Config{Dialect: sqlprojection.SQLite})
	require.NoError(t, err)
	one := sqlprojection.On(func(context.Context, *sql.Tx, deposited, *journal.Record) error { return nil })
	for name, reactions := range map[string][]sqlprojection.Reaction{
		"empty":             {{}},
		"no function":       {sqlprojection.On[deposited](nil)},
		"two of a type":     {one, one},
		"pointer event":     {sqlprojection.On(func(context.Context, *sql.Tx, *deposited, *journal.Record) error { return nil })},
		"interface as type": {sqlprojection.On(func(context.Context, *sql.Tx, event, *journal.Record) error { return nil })},
	} {
		_, err := store.React(reactions...)
		require.ErrorAs(t, err, new(*sqlprojection.ConfigError), name)
	}
	require.ErrorAs(t, store.Handle(nil)(message.NewMessage("id", nil)), new(*sqlprojection.ConfigError))
}

func TestTheTableIsMadeInTheDialectOfTheDatabase(t *testing.T) {
	t.Parallel()
	for dialect, want := range map[sqlprojection.Dialect]string{
		sqlprojection.SQLite: `CREATE TABLE IF NOT EXISTS millrace_positions (
	consumer_group TEXT NOT NULL,
	generation     INTEGER NOT NULL,
	aggregate_type TEXT NOT NULL,
	aggregate_id   TEXT NOT NULL,
	epoch          INTEGER NOT NULL,
	position       INTEGER,
	PRIMARY KEY (consumer_group, generation, aggregate_type, aggregate_id)
)`,
		sqlprojection.PostgreSQL: `CREATE TABLE IF NOT EXISTS millrace_positions (
	consumer_group TEXT NOT NULL,
	generation     BIGINT NOT NULL,
	aggregate_type TEXT NOT NULL,
	aggregate_id   TEXT NOT NULL,
	epoch          BIGINT NOT NULL,
	position       BIGINT,
	PRIMARY KEY (consumer_group, generation, aggregate_type, aggregate_id)
)`,
		sqlprojection.MySQL: `CREATE TABLE IF NOT EXISTS millrace_positions (
	consumer_group VARBINARY(512) NOT NULL,
	generation     BIGINT NOT NULL,
	aggregate_type VARBINARY(1003) NOT NULL,
	aggregate_id   VARBINARY(1003) NOT NULL,
	epoch          BIGINT NOT NULL,
	position       BIGINT,
	PRIMARY KEY (consumer_group, generation, aggregate_type, aggregate_id)
)`,
	} {
		store, err := sqlprojection.New(&sql.DB{}, sqlprojection.Config{Dialect: dialect})
		require.NoError(t, err)
		assert.Equal(t, want, store.Schema())
	}
}
