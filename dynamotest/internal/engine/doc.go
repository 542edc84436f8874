// Package engine is the database: tables, indexes and the operations on them, with the SDK's types
// in and out.
//
// It knows nothing of HTTP and of faults drawn at random. What a fault needs from the inside is
// offered as settings ([Config]) and as pauses in a transaction ([Pauses]).
//
// A [Database] has a lock for its map of tables, each [table] one for its rows and indexes. A
// transaction takes the locks of its tables in the order of their names.
package engine
