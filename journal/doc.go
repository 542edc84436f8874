// Package journal is the store as Go: the tables, their keys, and what is
// written to and read from them. It is the only package that knows attribute
// names and DynamoDB expressions of the store.
//
// # Words
//
//   - A [Record] is one stored event: a row of the journal table. The records
//     of an aggregate are numbered 1..n, without gap or repeat.
//
//   - A [Head] is the one row of an aggregate in the snapshot table. Its
//     version equals the sequence number of the aggregate's last event, and it
//     may carry a [Snapshot] of the state.
//
//   - A [Commit] is what one transaction writes: some records and the head,
//     under the condition that the head still has the expected version.
//
//   - A logical shard is one partition of the journal, "{aggregate type}-{n}".
//     A [KeyResolver] maps an aggregate to its shard.
//
//   - The descriptor is an item in the journal table that says how the tables
//     were made. [Open] compares it with the given [Config] and refuses to go
//     on where they differ, because two processes that disagree on the number
//     of shards would give one aggregate two heads.
//
//   - An [Encoding] turns payloads into what is stored and back; see packages compress and encrypt.
//
//   - The tail of a shard is the shard in the order of the events' time, see
//     [Journal.Tail].
//
//   - A command id makes a commit one that is written once; its guard is a row beside the events. See [Commit].
//
//   - A snapshot is in the head, or in a row of its own, by the [Layout]. Redundant ones are kept under their own
//     numbers; see [Redundancy].
//
//   - An aggregate can be truncated, when its snapshot stands for its first events, and deleted: the head is a tombstone
//     then. See [Journal.Truncate] and [Journal.Delete].
//
//   - An [Encoding] turns payloads into what is stored; [Journal.Raw] shows them as they are stored, for those who copy
//     them: [Journal.Restore] writes events as they once were.
//
// # Use
//
//	if err := journal.Create(ctx, client, journal.Config{Shards: 16}); err != nil { ... }
//	j, err := journal.Open(ctx, client, journal.Config{})
//
// A [Journal] is safe for concurrent use and is shared by repositories,
// publishers and subscribers of one process: a commit through it wakes the
// subscribers that use the same Journal at once, see [Journal.Watch].
//
// # Tables
//
// The journal and snapshot tables are those of the event-store-adapter family.
// What that family does not know (event id, event type, metadata, commit id, encoding, the
// snapshot's sequence number and digest) are attributes of ours beside theirs,
// which it ignores.
package journal
