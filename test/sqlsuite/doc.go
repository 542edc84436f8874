// Package sqlsuite holds the tests of package sqlprojection on databases, in a module of its own as
// they need drivers. They run on SQLite in the process, and on servers that the environment names:
// MILLRACE_POSTGRES_DSN in the form of lib/pq, MILLRACE_MYSQL_DSN in that of go-sql-driver/mysql,
// MySQL or MariaDB. Each test has a schema of its own there.
package sqlsuite
