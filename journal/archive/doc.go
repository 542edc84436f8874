// Package archive exports aggregates of a journal as JSON lines, and imports them into a journal.
// Use it for backups that outlive their tables, and to verify a journal. Use it also to change the
// number of shards, the resolver or the layout, or to copy one aggregate from production to a test.
// Archives are streamed and verified, and an interrupted run can be resumed.
//
//	done, err := archive.Export(ctx, j, file, archive.ExportOptions{})
//	...
//	done, err := archive.Import(ctx, other, file, archive.ImportOptions{})
//
// # Terms
//
//   - [Export] writes an archive. [ResumePosition] returns the position at which an interrupted
//     export can be resumed. An aggregate that cannot be read ends the export, unless
//     ExportOptions.Unreadable leaves it out.
//   - [Import] writes the events of an archive into a journal. Run it again to continue after an
//     error.
//   - [Verify] reads a journal, [VerifyArchive] reads an archive, and [Compare] reads both. They
//     return a [Report] of all faults.
//
// # Content of an archive
//
// An archive has each aggregate as it was at one moment: its head with the latest snapshot, and its
// events up to the head's version. The events begin with 1, or with the first event that is not
// truncated, and have all fields of a journal.Record. Different aggregates are exported at
// different moments. Tombstones are exported too.
//
// Payloads are as they are stored. Compressed and encrypted payloads stay so, and no key is needed.
// A journal with the same journal.Config.Encodings and the same keys can read them after the
// import.
//
// An archive does not contain redundant snapshots, which the new journal creates again. It does not
// contain command ids, so a command that was executed before the export can be executed again after
// the import. It does not contain the positions of consumer groups, or attributes of other
// programs. A payload that another program stored as text is imported as binary.
//
// # Format
//
// A line is a JSON object with a kind. It has at most 4 MB. Readers ignore unknown fields, and
// refuse unknown kinds and format versions. Payloads are base64. Times are in milliseconds since
// 1970.
//
//	{"kind":"archive","format":"millrace-archive","table":"shop-journal",...}
//	{"kind":"head","aggregate":{"type":"account","value":"42"},"version":120,"snapshot":{...}}
//	{"kind":"event","number":1,"id":"6f1d...","type":"account.opened","payload":"eyJ...",...}
//	...
//	{"kind":"sum","events":98,"sha256":"9f86..."}
//	...
//	{"kind":"end","events":120,"sha256":"60a1..."}
//	...
//	{"kind":"left_out","aggregate":{"type":"account","value":"43"},"reason":"read events ..."}
//	{"kind":"end","sha256":"b5bb..."}
//	...
//	{"kind":"total","aggregates":1,"events":120,"left_out":1}
//
// A page is up to 98 events or about 1 MB, so that it fits into one transaction. It ends with a sum
// line, and the last page of an aggregate with an end line. Both lines hold the number of the
// aggregate's events so far, and the SHA-256 of all its lines so far, including the head and the
// line ends. So an incomplete page is never used. The digests detect accidents, not forgery.
//
// An archive has an aggregate as a whole, or leaves it out. A left_out line then takes its place.
// It names the aggregate if the name can be read from the head. An import skips and counts it.
// Verification and comparison report it as a fault.
//
// An archive is as confidential as the journal. Events that are deleted from a journal stay in its
// archives. Encrypted events cannot be read there either after their key was destroyed.
//
// # Imports and subscribers
//
// Imported events keep their times, which are in the past, rounded down to the unit of the journal.
// A consumer group that begins later reads all of them.
//
// In the layout Classic, the tail has the order of these times. So a group that has passed them
// does not see the events in the tail. It gets them with the next event of their aggregate, or at
// the latest by the next reconciliation (subscriber.Timing.ReconcileInterval, 1 hour by default),
// in order and each once. If that is too late, call Reconcile of package groups, import before the
// groups start, or import into a separate journal. Broadcasts (subscriber.NewBroadcast) have no
// reconciliation, and groups with positions in an SQL database have none by default. They get the
// events only with the next event of their aggregate.
//
// In the layout Packed, the tail has the order of writing, so groups get imported events
// immediately.
//
// An import wakes the subscribers that use its Journal. A group that was started at a time
// (subscriber.Now, subscriber.At) treats imported events from before that time as handled.
package archive
