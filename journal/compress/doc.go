// Package compress makes stored payloads smaller: events and snapshots over some size are compressed on their way into
// the journal, and decompressed on their way out.
//
//	gzip, err := compress.Gzip(compress.Config{})
//	j, err := journal.Open(ctx, client, journal.Config{Encodings: []journal.Encoding{gzip}})
//
// DynamoDB bills writes for each KB and reads for each 4 KB, and an item has at most 400 KB. JSON shrinks to a tenth to a
// third, so compression pays for payloads of some KB, and for states in the head above all, which every commit writes
// again.
//
// Put it before encryption in [journal.Config.Encodings], for nothing compresses after it. Compressed and then
// encrypted, a payload's length tells something of its content: do not compress where an attacker chooses a part of
// a payload, sees the lengths, and must not guess the rest.
package compress
