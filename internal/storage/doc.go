// Package storage holds the data that a journal exchanges with the packages of this module, such as
// commits, receipts, cursors and limits. Users of a journal do not need it.
package storage
