package storage

// Engine returns the implementation of the methods of a *journal.Journal. Package journal sets it,
// and package eventlog calls it.
var Engine func(journal any) any
