package journal_test

import (
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

var _ eventlog.Engine = (*journal.Engine)(nil)
