// Package compress makes stored payloads smaller: events and snapshots over some size are
// compressed on their way into the journal, and decompressed on their way out.
//
//	gzip, err := compress.Gzip(compress.Config{})
//	j, err := journal.Open(ctx, client, journal.Config{Encodings: []journal.Encoding{gzip}})
//
// DynamoDB bills writes for each KB and reads for each 4 KB, and an item has at most 400 KB. JSON
// shrinks to a tenth to a third, so compression pays for payloads of some KB, and most of all for
// states in the head, which every commit writes again.
//
// Put it before encryption in [journal.Config.Encodings], because encrypted payloads do not
// compress. If a payload is compressed and then encrypted, its length reveals something of its
// content. Do not compress if an attacker can choose a part of a payload, sees the lengths, and
// must not guess the rest.
package compress
