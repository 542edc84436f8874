// Package engine is the database: tables, indexes, and the operations on them with the SDK's inputs
// and outputs.
//
// It does not know HTTP or random faults. Faults use its settings ([Config]) and the hooks of an
// operation ([Interference]).
//
// A [Database] has a lock for its map of tables. Each [table] has a lock for its rows and indexes.
// A transaction takes the locks of its tables in the order of their names.
package engine
