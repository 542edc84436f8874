// Package sqlsuite has the tests of package sqlprojection on databases. It is in another module,
// since it needs drivers. The tests run on SQLite in the process, and on the servers in the
// environment: MILLRACE_POSTGRES_DSN in the form of lib/pq, and MILLRACE_MYSQL_DSN in the form of
// go-sql-driver/mysql for MySQL or MariaDB. Each test has its own schema there.
package sqlsuite
