package sqlprojection

import (
	"database/sql"
	"fmt"
	"regexp"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/history"
)

// ConfigError reports a setting or a reaction that cannot work. Reason says why.
type ConfigError struct{ Reason string }

func (e *ConfigError) Error() string { return "sqlprojection: " + e.Reason }

// DefaultTable is the default of [Config].Table.
const DefaultTable = "millrace_positions"

// Config configures a [Store]. Dialect is required.
type Config struct {
	// Dialect is the SQL of the database.
	Dialect Dialect

	// Table is the table of positions: letters, digits and underscores, with a schema name and a
	// dot before it if needed. It is not quoted. Default: [DefaultTable].
	Table string

	// Isolation is the isolation level of the handlers' transactions. Effects happen once at any
	// level; other reads of the functions may need a higher one. Default: the default of the
	// database.
	Isolation sql.IsolationLevel

	// Codec decodes the events of typed reactions. Default: aggregate.JSON.
	Codec aggregate.Codec

	// Definitions upcast the events of their aggregates before typed reactions receive them, and
	// their codecs decode these events. Events of other aggregates keep their stored form. Default:
	// none.
	Definitions []aggregate.AnyDefinition
}

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

func (c *Config) setDefaults() {
	if c.Table == "" {
		c.Table = DefaultTable
	}
	if c.Codec == nil {
		c.Codec = aggregate.JSON
	}
}

// validate returns a [*ConfigError] for the first setting that cannot work.
func (c Config) validate() error {
	c.setDefaults()
	switch c.Dialect {
	case SQLite, PostgreSQL, MySQL:
	case "":
		return &ConfigError{"Dialect is empty: name one of SQLite, PostgreSQL and MySQL"}
	default:
		return &ConfigError{fmt.Sprintf("Dialect %q is unknown: name one of SQLite, PostgreSQL and MySQL", c.Dialect)}
	}
	if !tableName.MatchString(c.Table) {
		return &ConfigError{fmt.Sprintf("Table %q is not a plain name: use letters, digits and underscores", c.Table)}
	}
	if _, err := history.New(c.Codec, c.Definitions); err != nil {
		return &ConfigError{err.Error()}
	}
	return nil
}
