// Package journal creates and opens the DynamoDB tables that hold events, and reads them.
// Applications write events with package repository or publisher. They read them with package
// repository, subscriber or projection. All of these take an open [Journal].
//
//	config := journal.Config{Layout: journal.Packed, Shards: 16} // both are permanent
//	err := journal.Create(ctx, client, config)                   // once, at deployment
//	j, err := journal.Open(ctx, client, journal.Config{})        // in each process
//
// A process opens one Journal and shares it. A Journal is safe for concurrent use. A commit
// immediately wakes the subscribers that use the same Journal.
//
// # Terms
//
//   - The [Layout] determines how events and snapshots are stored. [Packed] is cheaper and right
//     for new tables. [Classic] is for tables that other programs share. [Create] needs one.
//
//   - A [Record] is one stored event. The events of an aggregate have the numbers 1..n, without gap
//     or repeat. In the layout Classic an event is a row of the journal table. In Packed the item
//     of a commit holds its events.
//
//   - A [Snapshot] is the encoded state of an aggregate after one of its events. Loads start from
//     it.
//
//   - A [Head] is the version of an aggregate, which is the number of its last event, and its
//     latest snapshot if there is one. In the layout Classic the head is a row of the snapshot
//     table, which every commit updates. In Packed the last commit shows the version, and the
//     snapshot table has only the snapshot.
//
//   - A commit writes the events of one decision: all of them, or none. It succeeds only if the
//     aggregate has the version on which the decision was made. Otherwise it fails with
//     [ErrConflict]. In the layout Classic a commit is a transaction that updates the head. In
//     Packed it is one item, or a transaction if it needs several.
//
//   - A shard is a part of the aggregates of one type. The members of a consumer group divide the
//     shards among themselves. The number of shards is fixed when the tables are created. In the
//     layout Classic a shard is one partition of the journal table, "{aggregate type}-{n}", and a
//     [KeyResolver] maps an aggregate to it. Package resolver has the resolvers of other programs.
//     In Packed a shard is one partition of the tail index, or several after [Journal.GrowTail].
//
//   - The tail is the list of the events of a shard in the order of their times, from an index.
//     Consumer groups read it.
//
//   - The descriptor is an item of the journal table that records the settings on which all
//     processes must agree: shards, resolver, layout, attribute names, unit of times and required
//     encodings. [Open] reads it and refuses other settings.
//
//   - An [Encoding] compresses or encrypts payloads; see packages compress and encrypt. A journal
//     can require encodings ([Config.RequiredEncodings]).
//
// # Reading
//
// [Journal.Head] and [Journal.Events] read one aggregate. [Journal.Heads] lists the aggregates;
// [HeadsQuery].Limit divides the list into pages. [Journal.Tail] reads the events of a type since a
// time, and [Journal.Newest] its newest events, newest first. [Journal.Raw] reads without decoding
// payloads. [CountUnits] counts the capacity units that reads and writes consume. Package tail
// follows a type as events are written. Package archive exports, imports, compares and verifies
// journals.
//
// # Removing
//
// [Journal.Truncate] removes the first events of an aggregate, which its snapshot replaces.
// [Journal.Delete] removes an aggregate and leaves a tombstone, so that no number is used twice.
//
// # Limits
//
// An item has at most 400 KB, so an event has less. A commit has at most 4 MB and 99 events. An
// aggregate id has at most aggregate.MaxIDBytes bytes. [TooLargeError] reports what is too large.
//
// # Errors
//
// An error with details has a type, for errors.As: [*TooLargeError], [*DeletedError] and others. An
// error without details is a variable, for errors.Is: [ErrNotFound], [ErrThrottled] and others.
// Only [ErrConflict] and [ErrOutcomeUnknown] are both. After an [OutcomeUnknownError],
// [Journal.Resolve] reports whether the commit was written. docs/reference/errors.md lists for each
// error what was written and what to do.
//
// # Tables
//
// In the layout [Classic] the journal and snapshot tables are those of the event-store-adapter
// family, whose programs may share them. Millrace stores its additional values, such as event id,
// event type and metadata, in additional attributes, which the family ignores. In the layout
// [Packed] only programs of this module may use the tables. docs/reference/schema.md lists their
// attributes.
package journal
