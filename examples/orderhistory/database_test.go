package main

import (
	"testing"

	"github.com/millrace-dev/millrace/examples/internal/apptest"
)

func TestThePrintedCommandReachesTheTables(t *testing.T) {
	apptest.ReachTables(t, apptest.App{Run: run, Serving: "Serving orders on ", Snapshot: "ftgo-snapshot", Group: "order-history"})
}
