// Package storage holds the data that a journal exchanges with the packages of this module:
// commits, receipts, cursors and limits. The journal's users do not need this data. Package journal
// imports it, and package eventlog exports it to the other packages.
//
// Some types have parameters because this package cannot name those of package journal: Record,
// Head, Snapshot and Corrupt stand for journal.Record, journal.Head, journal.Snapshot and
// journal.CorruptItemError.
package storage
