package command

import (
	"cmp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
)

// prefixEnv is the environment variable for --prefix.
const prefixEnv = "MILLRACE_PREFIX"

// tableNames holds the names of all tables. The default of a name is the prefix and a default name,
// as in millrace.Config.
type tableNames struct {
	// Snapshot is empty unless --snapshot-table sets it, since the journal stores the name.
	journal.Tables
	model, process string // tables of read models, and of process managers
	prefix         string
}

func (n *tableNames) register(flags *pflag.FlagSet, getenv func(string) string) {
	flags.StringVar(&n.prefix, "prefix", strings.TrimSpace(getenv(prefixEnv)),
		"`text` at the beginning of table names, such as \"shop-\", except of names that a flag sets; default is $"+prefixEnv)
	flags.Lookup("prefix").DefValue = "" // help is the same in any environment
	flags.StringVar(&n.Journal, "journal-table", "", "`name` of the journal table; default is the prefix and \"journal\"")
	flags.StringVar(&n.Snapshot, "snapshot-table", "", "`name` of the snapshot table; default is the name that the journal stores, or for new tables the prefix and \"snapshot\"")
	flags.StringVar(&n.Checkpoint, "checkpoint-table", "", "`name` of the checkpoint table; default is the prefix and \"checkpoint\"")
	flags.StringVar(&n.model, "model-table", "", "`name` of the table of read models; default is the prefix and \""+readmodel.DefaultTable+"\"")
	flags.StringVar(&n.process, "process-table", "", "`name` of the table of process managers; default is the prefix and \""+process.DefaultTable+"\"")
}

// complete sets the default names.
func (n *tableNames) complete() {
	n.Journal = cmp.Or(n.Journal, n.prefix+"journal")
	n.Checkpoint = cmp.Or(n.Checkpoint, n.prefix+"checkpoint")
	n.model = cmp.Or(n.model, n.prefix+readmodel.DefaultTable)
	n.process = cmp.Or(n.process, n.prefix+process.DefaultTable)
}

// newSnapshot returns the name of the snapshot table for a new journal.
func (n *tableNames) newSnapshot() string { return cmp.Or(n.Snapshot, n.prefix+"snapshot") }
