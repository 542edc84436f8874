// Package journal holds the tables of the store: it creates and opens them, and lets tools read
// them. Events are written with package repository or publisher, and read with package repository,
// subscriber or projection; all of them take an open [Journal].
//
//	err := journal.Create(ctx, client, journal.Config{Shards: 16}) // once, for example at deployment
//	j, err := journal.Open(ctx, client, journal.Config{})          // in each process
//
// A process opens one Journal and shares it. It is safe for concurrent use, and a commit wakes the
// subscribers that use the same Journal at once.
//
// # Terms
//
//   - A [Record] is one stored event, a row of the journal table. The events of an aggregate have
//     the numbers 1..n, without gap or repeat.
//
//   - A [Head] is the one row of an aggregate in the snapshot table that every commit updates. Its
//     version is the number of the last event. It may carry a [Snapshot] of the state.
//
//   - A commit writes the events of one decision and updates the head, in one transaction. It
//     succeeds only if the head has the version on which the decision was made; otherwise it fails
//     with [ErrConflict].
//
//   - A shard is one partition of the journal table, "{aggregate type}-{n}". The number of shards
//     is fixed when the tables are created. A [KeyResolver] maps an aggregate to its shard; package
//     resolver has those of other programs.
//
//   - The descriptor is an item of the journal table that records the settings on which all
//     processes must agree: shards, resolver, layout, attribute names, unit of times and required
//     encodings. [Open] reads it and refuses settings that differ.
//
//   - The [Layout] says how events and snapshots are stored. [Packed] is the cheaper one and right
//     for new tables; [Classic], the default, is for tables that other programs share.
//
//   - An [Encoding] compresses or encrypts payloads; see packages compress and encrypt. A journal
//     can require encodings ([Config.RequiredEncodings]).
//
// # Reading
//
// [Journal.Head] and [Journal.Events] read one aggregate, [Journal.Heads] lists the aggregates, and
// [Journal.Tail] reads the latest events of a type. [Journal.Raw] reads without decoding payloads.
// Package archive exports, imports, compares and verifies journals.
//
// # Removing
//
// [Journal.Truncate] removes the first events of an aggregate, which its snapshot replaces.
// [Journal.Delete] removes an aggregate; its head stays as a tombstone, so that no number is used
// twice.
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
// family, whose programs may share them. The terms above are those of this layout; docs/layouts.md
// has the other one. Values that the family does not have, such as event id, event type and
// metadata, are attributes beside theirs, which it ignores.
package journal
