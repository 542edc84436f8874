// Package storage holds the data that a journal exchanges with the packages of this module, such as
// commits, receipts, cursors and limits. Users of a journal do not need this data. Package journal
// imports this package, and package eventlog exports it to the other packages.
//
// Some types have type parameters, because this package cannot import package journal: Record,
// Head, Snapshot and Corrupt stand for journal.Record, journal.Head, journal.Snapshot and
// journal.CorruptItemError.
package storage
