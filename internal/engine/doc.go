// Package engine is the part of a journal that does not depend on its layout. It validates commits,
// encodes and decodes payloads, reads and writes the descriptor, and wakes readers in the same
// process. A [Layout] stores and reads: package journal passes the two layouts to [New].
//
// A commit passes these steps. [Engine.Append] makes a [Draft], which is the validated and encoded
// commit. The layout makes a [Part] of it, which builds the request. [table.Table.Send] has the
// part make attempts, and asks it about each refusal. The engine embeds the table, so Send, Date
// and Shard are its methods too.
//
// Users of a journal do not need this package. Journal.Internal returns the engine of a journal to
// the other packages of this module.
package engine
