// Package eventlog adds the internal methods of a journal to its public ones, for the packages of
// this module. Examples are [Log.Append] and the pages of a shard's tail, which users do not need.
//
// Package journal implements the methods, but does not export them. [Of] finds them.
package eventlog
