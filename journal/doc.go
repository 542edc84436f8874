// Package journal holds the tables of the store: it creates and opens them, and lets tools read
// them. Events are written with package repository or publisher, and read with package repository,
// subscriber or projection; all of them take an open [Journal].
//
//	config := journal.Config{Layout: journal.Packed, Shards: 16} // neither can change later
//	err := journal.Create(ctx, client, config)                   // once, for example at deployment
//	j, err := journal.Open(ctx, client, journal.Config{})        // in each process
//
// A process opens one Journal and shares it. It is safe for concurrent use, and a commit wakes the
// subscribers that use the same Journal at once.
//
// # Terms
//
//   - The [Layout] says how events and snapshots are stored. [Packed] is the cheaper one and right
//     for new tables; [Classic], the default, is for tables that other programs share.
//
//   - A [Record] is one stored event. The events of an aggregate have the numbers 1..n, without gap
//     or repeat. In the layout Classic an event is a row of the journal table. In Packed the item of
//     a commit holds its events.
//
//   - A [Head] is what there is to know of an aggregate besides its events: its version, which is
//     the number of the last event, and the latest [Snapshot] of its state, if there is one. In the
//     layout Classic the head is a row of the snapshot table, which every commit updates. In Packed
//     the last commit shows the version, and the snapshot table has only the snapshot.
//
//   - A commit writes the events of one decision: all of them, or nothing. It succeeds only if the
//     aggregate has the version on which the decision was made; otherwise it fails with
//     [ErrConflict]. In the layout Classic a commit is a transaction that updates the head. In
//     Packed it is one item, or a transaction if it needs several.
//
//   - A shard is a part of the aggregates of one type. The members of a consumer group divide the
//     shards among themselves. The number of shards is fixed when the tables are created. In the
//     layout Classic a shard is one partition of the journal table, "{aggregate type}-{n}", and a
//     [KeyResolver] maps an aggregate to it; package resolver has those of other programs. In
//     Packed a shard is one partition of the tail index or, after [Journal.GrowTail], several.
//
//   - The descriptor is an item of the journal table that records the settings on which all
//     processes must agree: shards, resolver, layout, attribute names, unit of times and required
//     encodings. [Open] reads it and refuses settings that differ.
//
//   - An [Encoding] compresses or encrypts payloads; see packages compress and encrypt. A journal
//     can require encodings ([Config.RequiredEncodings]).
//
// # Reading
//
// [Journal.Head] and [Journal.Events] read one aggregate. [Journal.Heads] lists the aggregates,
// page by page with [HeadsQuery].Limit. [Journal.Tail] reads the events of a type since a time, and
// [Journal.Newest] its newest events, newest first. [Journal.Raw] reads without decoding payloads.
// Package tail follows a type as events are written. Package archive exports, imports, compares and
// verifies journals. [CountUnits] counts the capacity units that reads and writes consume.
//
// # Removing
//
// [Journal.Truncate] removes the first events of an aggregate, which its snapshot replaces.
// [Journal.Delete] removes an aggregate and leaves a tombstone, so that no number is used twice.
//
// # Errors
//
// An error with details has a type, for errors.As: [*TooLargeError], [*DeletedError] and others. An
// error without details is a variable, for errors.Is: [ErrNotFound], [ErrThrottled] and others.
// Only [ErrConflict] and [ErrOutcomeUnknown] are both. After an [OutcomeUnknownError],
// [Journal.Resolve] reports whether the commit was written.
//
// # Tables
//
// In the layout [Classic] the journal and snapshot tables are those of the event-store-adapter
// family, whose programs may share them. Values that the family does not have, such as event id,
// event type and metadata, are attributes beside theirs, which it ignores. In the layout [Packed]
// the tables belong to programs of this module alone; docs/guides/layouts.md lists their attributes.
package journal
