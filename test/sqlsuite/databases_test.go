package sqlsuite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"
	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"github.com/millrace-dev/millrace/projection/sqlprojection"
)

// Servers that the tests run on too.
const (
	postgresDSN = "MILLRACE_POSTGRES_DSN"
	mysqlDSN    = "MILLRACE_MYSQL_DSN"
)

// database holds the read model and the positions.
type database struct {
	dialect sqlprojection.Dialect
	connect driver.Connector
}

// another returns an empty database of the same kind.
func (d database) another(t *testing.T) database {
	t.Helper()
	switch d.dialect {
	case sqlprojection.PostgreSQL:
		return newPostgres(t, os.Getenv(postgresDSN))
	case sqlprojection.MySQL:
		return newMySQL(t, os.Getenv(mysqlDSN))
	default:
		return newSQLite(t)
	}
}

// onEach runs a test on each available database.
func onEach(t *testing.T, test func(t *testing.T, d database)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, newSQLite(t))
	})
	if dsn := os.Getenv(postgresDSN); dsn != "" {
		t.Run("PostgreSQL", func(t *testing.T) {
			t.Parallel()
			test(t, newPostgres(t, dsn))
		})
	}
	if dsn := os.Getenv(mysqlDSN); dsn != "" {
		t.Run("MySQL", func(t *testing.T) {
			t.Parallel()
			test(t, newMySQL(t, dsn))
		})
	}
}

// sqliteConnector opens connections to one file.
type sqliteConnector struct{ name string }

func (c sqliteConnector) Driver() driver.Driver { return &sqlite.Driver{} }
func (c sqliteConnector) Connect(context.Context) (driver.Conn, error) {
	return c.Driver().Open(c.name)
}

func newSQLite(t *testing.T) database {
	t.Helper()
	return database{sqlprojection.SQLite, sqliteConnector{"file:" + filepath.Join(t.TempDir(), "read.db") +
		"?_pragma=busy_timeout(120000)&_pragma=journal_mode(WAL)&_pragma=synchronous(off)"}}
}

func newPostgres(t *testing.T, dsn string) database {
	t.Helper()
	admin, err := sql.Open("postgres", dsn)
	require.NoError(t, err)
	connect, err := pq.NewConnector(dsn + " search_path=" + newSchema(t, admin, "CASCADE"))
	require.NoError(t, err)
	return database{sqlprojection.PostgreSQL, connect}
}

func newMySQL(t *testing.T, dsn string) database {
	t.Helper()
	admin, err := sql.Open("mysql", dsn)
	require.NoError(t, err)
	config, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	config.DBName = newSchema(t, admin, "")
	connect, err := mysql.NewConnector(config)
	require.NoError(t, err)
	return database{sqlprojection.MySQL, connect}
}

// newSchema creates a schema, and drops it at the end of the test by the given statement.
func newSchema(t *testing.T, admin *sql.DB, way string) string {
	t.Helper()
	schema := fmt.Sprintf("test_%016x", rand.Uint64())
	_, err := admin.ExecContext(t.Context(), "CREATE SCHEMA "+schema)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := admin.ExecContext(context.Background(), "DROP SCHEMA "+schema+" "+way)
		require.NoError(t, errors.Join(err, admin.Close()))
	})
	return schema
}

// open returns a separate pool, as a process would have it.
func (d database) open(t *testing.T, connect driver.Connector) *sql.DB {
	t.Helper()
	db := sql.OpenDB(connect)
	db.SetMaxOpenConns(8)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// text returns a statement in the dialect of the database.
func (d database) text(statement string) string {
	if d.dialect != sqlprojection.PostgreSQL {
		return statement
	}
	for i := 1; strings.Contains(statement, "?"); i++ {
		statement = strings.Replace(statement, "?", fmt.Sprintf("$%d", i), 1)
	}
	return statement
}
