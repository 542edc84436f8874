// Package table makes requests to the tables of a journal: reads that wait for unprocessed keys,
// writes that wait for transactions on their items, and commits, whose outcome it finds out if a
// reply is lost. It knows names of tables and attributes, the clock and the retry budget, but not
// how events are stored.
package table
