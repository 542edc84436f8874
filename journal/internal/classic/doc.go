// Package classic is the layout journal.Classic, the one of the event-store-adapter family: an
// event is a row of the journal table, and the head of an aggregate is a row of the snapshot table
// that every commit updates. Other programs may share the tables.
package classic
