// Package eventlog is the journal as the packages of this module use it: it adds to the public
// methods of a *journal.Journal those that users do not need, such as [Log.Append] and the pages of
// a shard's tail.
//
// The methods are implemented in package journal, which keeps them out of its public surface; [Of]
// finds them.
package eventlog
