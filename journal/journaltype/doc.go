// Package journaltype holds the types of a journal that package journal shares with the packages
// below it: records, heads, snapshots, errors and the interfaces that a user can implement. Package
// journal has an alias for each of them. Programs use the names of package journal.
//
// The types Journal and Config in these comments are those of package journal.
package journaltype
