// Package compress compresses the payloads that a journal stores in DynamoDB. It compresses larger
// events and snapshots before they are stored, and decompresses them when they are read.
//
//	gzip, err := compress.Gzip(compress.Config{})
//	j, err := journal.Open(ctx, client, journal.Config{Encodings: []journal.Encoding{gzip}})
//
// DynamoDB bills writes for each KB and reads for each 4 KB, and an item has at most 400 KB. The
// layout [journal.Packed] compresses by itself. It needs this package only for payloads that are
// encrypted afterwards, and for those that would exceed 400 KB. In [journal.Classic], this package
// saves most for states in the head, which every commit writes again.
//
// Put compression before encryption in [journal.Config.Encodings], because encrypted payloads do
// not compress. If a payload is compressed and then encrypted, its length reveals something about
// its content. Do not compress if an attacker can choose a part of a payload, can see the lengths,
// and must not guess the rest.
package compress
