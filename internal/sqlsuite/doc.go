// Package sqlsuite holds the tests of package sqlprojection on databases, in a module of its own as they need drivers. They run on
// SQLite in the process, and on PostgreSQL too where MILLRACE_POSTGRES_DSN names one, in the form of lib/pq. Each test
// has a schema of its own there.
package sqlsuite
