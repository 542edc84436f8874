package permissions

const (
	reads  = "Query GetItem BatchGetItem" // of the journal
	index  = "Query"
	create = "DescribeTable CreateTable"
	expiry = " DescribeTimeToLive UpdateTimeToLive"
)

// Programs are the rows of the documentation, in its order.
var Programs = []Program{
	{Name: "journal.Open", Row: "journal.Open, in all of those below", Both: Needs{Journal: "GetItem"}},
	{Name: "journal.Create", Both: Needs{
		Journal: create + expiry + " Scan GetItem PutItem", Snapshot: create + expiry + " Scan", Checkpoint: create,
	}},
	{
		Name: "with more types in RequiredByType", Both: Needs{Journal: "UpdateItem"},
		Classic: Needs{Snapshot: "Query"}, Packed: Needs{Journal: "Query", JournalIndex: index},
	},
	{Name: "journal.Adopt", Classic: Needs{Journal: "DescribeTable GetItem PutItem Scan", Snapshot: "DescribeTable Scan", Checkpoint: create}},
	{Name: "journal.MarkRestored, GrowTail", Both: Needs{Journal: "GetItem UpdateItem"}},

	{
		Name: "Load", Row: "repository: Load", As: []string{"journal.Open"}, Both: Needs{Journal: reads, Snapshot: "GetItem"},
		Classic: Needs{JournalIndex: index}, Packed: Needs{Snapshot: "BatchGetItem"},
	},
	{Name: "LoadAtVersion, LoadAtTime, States", As: []string{"Load"}, Classic: Needs{SnapshotIndex: index}},
	{Name: "Execute, Save", As: []string{"Load"}, Both: Needs{Journal: "PutItem", Snapshot: "PutItem UpdateItem"}},
	{
		Name: "with redundant snapshots up to a number", Classic: Needs{Snapshot: "DeleteItem BatchWriteItem"},
		Packed: Needs{Snapshot: "PutItem DeleteItem BatchWriteItem"},
	},
	{Name: "with command ids", Classic: Needs{Snapshot: "ConditionCheckItem"}},
	{Name: "with writes of the caller", Both: Needs{Projected: "PutItem UpdateItem DeleteItem ConditionCheckItem"}},
	{
		Name: "Transaction", As: []string{"Execute, Save"},
		Classic: Needs{Snapshot: "ConditionCheckItem"}, Packed: Needs{Journal: "ConditionCheckItem"},
	},
	{
		Name: "Truncate, Delete", Row: "journal: Truncate, Delete",
		Both: Needs{
			Journal:  "Query UpdateItem",
			Snapshot: "GetItem UpdateItem Query BatchWriteItem DeleteItem",
		},
		Classic: Needs{Journal: "BatchWriteItem DeleteItem DescribeTimeToLive", JournalIndex: index, SnapshotIndex: index},
		Packed:  Needs{Journal: "GetItem PutItem", Snapshot: "BatchGetItem PutItem ConditionCheckItem"},
	},
	{Name: "publisher", As: []string{"journal.Open"}, Both: Needs{Journal: reads + " PutItem", Snapshot: "GetItem PutItem UpdateItem"}, Classic: Needs{JournalIndex: index}},
	{
		Name: "subscriber", As: []string{"Load"},
		Both:    Needs{JournalIndex: index, Checkpoint: "GetItem Query PutItem UpdateItem DeleteItem"},
		Classic: Needs{Snapshot: "Query"}, Packed: Needs{Checkpoint: "BatchGetItem"},
	},
	{Name: "live", As: []string{"Load"}, Both: Needs{JournalIndex: index, Checkpoint: "GetItem BatchGetItem"}},
	{Name: "projection", As: []string{"subscriber"}, Both: Needs{Projected: "PutItem UpdateItem DeleteItem ConditionCheckItem GetItem BatchGetItem"}},
	{Name: "projection.Rows: reads of its group", Both: Needs{Projected: "GetItem BatchGetItem"}},
	{Name: "projection.Rows: actions on its group", Both: Needs{Projected: "PutItem UpdateItem"}},
	{Name: "projection.Reader", Both: Needs{Projected: "GetItem Query", ProjectedIndex: index}},
	{Name: "projection.CreateTable", Both: Needs{Projected: create + expiry}},

	{Name: "dedup: Positions", Both: Needs{Dedup: "GetItem UpdateItem PutItem"}},
	{Name: "dedup: Keys", Row: "Keys", Both: Needs{Dedup: "PutItem"}},
	{Name: "dedup.CreateTable", Row: "CreateTable", Both: Needs{Dedup: create + expiry}},
	{
		Name: "readmodel", As: []string{"groups: List, Get, Lag, Estimate, Behind, Parked, SelectParked, Skipped", "Remove"},
		Both: Needs{ReadModel: "GetItem UpdateItem"},
	},
	{Name: "readmodel: List", Row: "readmodel", Both: Needs{ReadModel: "Scan"}},
	{Name: "readmodel.CreateTable", Row: "readmodel", Both: Needs{ReadModel: create}},
	{
		Name: "process", As: []string{"Execute, Save", "with command ids"},
		Both: Needs{Process: "GetItem PutItem UpdateItem DeleteItem Query", ProcessIndex: index},
	},
	{Name: "process.CreateTable", Row: "process", Both: Needs{Process: create}},
	{Name: "Backlog", Both: Needs{Process: "Scan Query UpdateItem DeleteItem"}},
	{Name: "Backlog: Due", Row: "Backlog", Both: Needs{Process: "GetItem BatchGetItem", ProcessIndex: index}},

	{
		Name: "groups: List, Get, Lag, Estimate, Behind, Parked, SelectParked, Skipped", As: []string{"Load"},
		Both: Needs{JournalIndex: index, Checkpoint: "Query GetItem BatchGetItem"}, Classic: Needs{Snapshot: "Query"},
	},
	{Name: "Position, WaitApplied", Both: Needs{Journal: "GetItem BatchGetItem", Snapshot: "GetItem", Checkpoint: "GetItem BatchGetItem"}, Packed: Needs{Snapshot: "BatchGetItem"}},
	{
		Name: "WaitIdle", Both: Needs{Checkpoint: "GetItem UpdateItem Query BatchGetItem"},
		Classic: Needs{Snapshot: "Query"}, Packed: Needs{JournalIndex: index},
	},
	{Name: "Pause, Resume", Both: Needs{Checkpoint: "GetItem UpdateItem"}},
	{Name: "Topics", Both: Needs{Checkpoint: "Query"}},
	{Name: "Reset, CleanUp", Both: Needs{Checkpoint: "GetItem UpdateItem Query BatchWriteItem"}},
	{Name: "Remove", Both: Needs{Checkpoint: "GetItem UpdateItem Query BatchWriteItem DeleteItem PutItem"}},
	{
		Name: "Unpark, Skip, ResetAggregate", As: []string{"Load"},
		Both: Needs{Checkpoint: "GetItem BatchGetItem UpdateItem PutItem Query DeleteItem"},
	},
	{Name: "UnparkAll, SkipAll", As: []string{"Load"}, Both: Needs{Checkpoint: "GetItem Query UpdateItem BatchGetItem PutItem"}},
	{Name: "Reconcile", Both: Needs{Checkpoint: "GetItem UpdateItem"}},
	{Name: "Reconciling, WaitReconciled", Both: Needs{Checkpoint: "GetItem BatchGetItem"}},
	{Name: "ForgetSkipped", Both: Needs{Checkpoint: "GetItem DeleteItem"}},
	{
		Name: "Trim, TrimEvery, TrimDue", Both: Needs{
			Journal: reads, JournalIndex: index, Snapshot: "GetItem UpdateItem", Checkpoint: "Query GetItem BatchGetItem UpdateItem",
		},
		Classic: Needs{Journal: "BatchWriteItem DeleteItem", Snapshot: "Query"}, Packed: Needs{Journal: "UpdateItem", Snapshot: "BatchGetItem PutItem ConditionCheckItem"},
	},
	{Name: "RetrySkipped, RetryAllSkipped", Both: Needs{Checkpoint: "GetItem UpdateItem PutItem Query"}},

	{
		Name: "console", Both: Needs{
			Journal: reads, JournalIndex: index, Snapshot: "GetItem", Checkpoint: "Query GetItem BatchGetItem",
			ReadModel: "Scan GetItem", Process: "Query GetItem BatchGetItem Scan", ProcessIndex: index,
		},
		Classic: Needs{Snapshot: "Query Scan", SnapshotIndex: index}, Packed: Needs{JournalIndex: "Scan", Snapshot: "BatchGetItem"},
	},
	{Name: "console with actions", As: []string{"console"}, Both: Needs{
		Checkpoint: "UpdateItem PutItem DeleteItem BatchWriteItem", ReadModel: "UpdateItem", Process: "UpdateItem DeleteItem",
	}},
	{
		Name: "archive: Export", Both: Needs{Journal: reads, JournalIndex: index, Snapshot: "GetItem BatchGetItem"},
		Classic: Needs{Snapshot: "Scan"}, Packed: Needs{JournalIndex: "Scan"},
	},
	{Name: "archive: Verify", Row: "Verify", Both: Needs{Journal: reads + " Scan", JournalIndex: index, Snapshot: "GetItem BatchGetItem"}, Classic: Needs{Snapshot: "Query Scan"}},
	{Name: "millrace", Row: "millrace, to describe the tables", Both: Needs{Journal: "DescribeTable"}},
	{Name: "millrace describe", Row: "millrace, to describe the tables", Both: Needs{Snapshot: "DescribeTable", Checkpoint: "DescribeTable"}},
	{Name: "journal/encrypt", Both: Needs{Keys: "GetItem PutItem"}},
	{Name: "journal/encrypt: Destroy", Row: "journal/encrypt", Both: Needs{Keys: "UpdateItem"}},
	{Name: "encrypt.CreateTable", Row: "journal/encrypt", Both: Needs{Keys: create}},
}
