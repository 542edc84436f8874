// Package archive exports aggregates of a journal as JSON lines, and imports them into a journal:
// streaming, resumable and verified. Use it for backups that outlive their tables, to move to
// another shard count, resolver or layout, to copy one aggregate from production to a test, and to
// verify a journal.
//
//	done, err := archive.Export(ctx, j, file, archive.ExportOptions{})
//	...
//	done, err := archive.Import(ctx, other, file, archive.ImportOptions{})
//
// # Words
//
//   - [Export] writes an archive. [Resume] returns where to continue an export that was cut off. An
//     aggregate that cannot be read ends the export, unless ExportOptions.Unreadable leaves it out.
//   - [Import] writes the events of an archive into a journal. If it is run again, it continues.
//   - [Verify] reads a journal, [VerifyArchive] an archive, and [Compare] both. They return a
//     [Report] of all faults.
//
// # What is in an archive
//
// An archive has each aggregate as it was at one moment: its head, with the latest snapshot, and
// its events from 1 (or from where it is truncated) to the head's version, with everything that a
// journal.Record holds. Payloads are as they are stored. So compressed and encrypted ones stay so,
// and no key is needed; a journal with the same journal.Config.Encodings and the same keys reads
// them after the import. Different aggregates are exported at different moments. Tombstones are
// exported too.
//
// Not in an archive are redundant snapshots, which the new journal collects again; command ids, so
// a command that was executed before the export can be executed again after the import; the
// positions of consumer groups; and attributes that foreign programs have added. A payload that a
// foreign program has stored as text is imported as binary.
//
// # Format
//
// A line is a JSON object with a kind, not longer than 4 MB. Readers ignore fields that they do not
// know, and refuse kinds and format versions that they do not know. Payloads are base64, times
// milliseconds since 1970.
//
//	{"kind":"archive","format":"millrace-archive","created":"2025-06-01T12:00:00Z","shards":16,...,"version":1}
//	{"kind":"head","aggregate":{"type":"account","value":"42"},"version":120,"snapshot":{"number":100,"payload":"eyJ..."}}
//	{"kind":"event","number":1,"id":"6f1d...","type":"account.opened.v1","occurred_at":1748779200000,"commit":"0c9b...","payload":"eyJ..."}
//	...
//	{"kind":"sum","events":98,"sha256":"9f86..."}
//	...
//	{"kind":"end","events":120,"sha256":"60a1..."}
//	...
//	{"kind":"left_out","aggregate":{"type":"account","value":"43"},"reason":"read events 1 to 7 of account-43: ..."}
//	{"kind":"end","sha256":"b5bb..."}
//	...
//	{"kind":"total","aggregates":1,"events":120,"left_out":1}
//
// A page is up to 98 events or about 1 MB, so that it fits into one transaction. It ends with a
// sum, the last one with the end line of its aggregate: the number of its events so far, and the
// SHA-256 of all its lines so far, from the head on and with their line ends. So an incomplete page
// is never used. The digests detect accidents, not forgery.
//
// An aggregate is in an archive as a whole, or it is left out. Then one line in its place says so,
// and names the aggregate if its head does. An import passes over it and counts it; verification
// and comparison report it as a fault.
//
// An archive is as confidential as the journal. Events that are deleted from a journal stay in its
// archives. Encrypted events are lost there too once their key is destroyed.
//
// # What subscribers see of an import
//
// Events keep their times, rounded down to the unit of the journal, which are in the past. A
// consumer group that begins later reads all of them.
//
// In the classic layout the tail goes by these times, so a group that has passed them does not see
// the events when it tails the journal. It gets them with the next event of their aggregate, or at
// the latest by a reconciliation (subscriber.Config.ReconcileInterval, 1 hour by default), in order
// and each once. If that is too late, call Reconcile of package groups, import before the groups
// start, or import into a separate journal. A subscription without reconciliations, the default with
// subscriber.Config.Broadcast or Positions, gets them with the next event of their aggregate alone.
// In the packed layout the tail goes by the time of writing, so groups get imported events at once.
//
// Subscribers that use the Journal of the import are woken by it. A group that was started at a
// time (subscriber.Now, subscriber.At) takes imported events from before that time as handled.
package archive
