package permissions

import "slices"

// The programs of roles that are parts of other roles.
var (
	writer = []string{
		"journal.Open", "LoadAtVersion, LoadAtTime, States", "Execute, Save", "with redundant snapshots up to a number", "with command ids", "Transaction", "publisher",
		"journal/encrypt",
	}
	consumer = []string{"journal.Open", "subscriber", "dedup: Positions", "dedup: Keys", "journal/encrypt"}
	process  = slices.Concat(consumer, []string{"process", "publisher"})
	reader   = []string{
		"journal.Open", "millrace", "millrace describe", "console", "groups: List, Get, Lag, Estimate, Behind, Parked, SelectParked, Skipped", "Topics",
		"projection.Rows: reads of its group",
	}
)

// Roles are all roles, in the order of the documentation.
var Roles = []Role{
	{Name: "application", Does: "an App with everything that it can run, and existing tables", Programs: slices.Concat(writer, consumer, process, []string{
		"projection", "projection.Reader", "with writes of the caller", "live", "readmodel", "Position, WaitApplied", "WaitIdle", "Topics", "Backlog: Due",
	})},
	{Name: "writer", Does: "repositories and publishers", Programs: writer},
	{Name: "consumer", Does: "subscribers", Programs: consumer},
	{Name: "projection", Does: "projections, and queries of the tables that they write to", Programs: slices.Concat(consumer, []string{"projection", "projection.Reader"})},
	{Name: "process-manager", Does: "process managers, and the publisher of their commands", Programs: process},
	{Name: "deploy", Does: "creating the tables and the descriptor", Programs: []string{
		"journal.Open", "journal.Create", "with more types in RequiredByType", "process.CreateTable", "readmodel.CreateTable", "projection.CreateTable", "dedup.CreateTable", "encrypt.CreateTable",
		"journal.MarkRestored, GrowTail", "millrace", "millrace describe",
	}},
	{Name: "operator-read", Does: "the console and the command, without actions", Programs: reader},
	{Name: "operator", Does: "the console and the command, with actions on groups, read models and processes", Programs: slices.Concat(reader, []string{
		"console with actions", "WaitIdle", "Pause, Resume", "Reset, CleanUp", "Remove", "Unpark, Skip, ResetAggregate", "UnparkAll, SkipAll",
		"Reconcile", "Reconciling, WaitReconciled", "ForgetSkipped", "RetrySkipped, RetryAllSkipped", "readmodel", "Backlog", "Backlog: Due",
		"projection.Rows: actions on its group",
	})},
	{Name: "export", Does: "exports and verification of the journal", Programs: []string{"journal.Open", "millrace", "archive: Export", "archive: Verify"}},
	{Name: "removal", Does: "truncation and deletion of aggregates, and trims of topics", Programs: []string{
		"journal.Open", "millrace", "Truncate, Delete", "Trim, TrimEvery, TrimDue", "journal/encrypt", "journal/encrypt: Destroy",
	}},
}
