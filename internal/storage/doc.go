// Package storage holds the data that a journal exchanges with the packages of this module, and
// that its users do not need: commits, receipts, cursors and limits. Package journal imports it,
// and package eventlog shows it to the others.
//
// Some types have parameters because this package cannot name those of package journal: Record,
// Head, Snapshot and Corrupt stand for journal.Record, journal.Head, journal.Snapshot and
// journal.CorruptItemError.
package storage
