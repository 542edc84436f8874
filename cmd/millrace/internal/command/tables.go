package command

import (
	"cmp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
)

// prefixEnv is the variable for --prefix.
const prefixEnv = "MILLRACE_PREFIX"

// tableNames are the names of all tables. A table without a flag of its own has the prefix and a
// default name, as in millrace.Config.
type tableNames struct {
	journal.Tables        // Snapshot is empty unless --snapshot-table names it: the journal stores the name
	model, process string // tables of read models, and of process managers
	prefix         string
}

func (n *tableNames) register(flags *pflag.FlagSet, getenv func(string) string) {
	flags.StringVar(&n.prefix, "prefix", strings.TrimSpace(getenv(prefixEnv)),
		"`text` that begins the names of tables that no flag names, such as \"shop-\"; default is $"+prefixEnv)
	flags.Lookup("prefix").DefValue = "" // help is the same in any environment
	flags.StringVar(&n.Journal, "journal-table", "", "`name` of the journal table; default is the prefix and \"journal\"")
	flags.StringVar(&n.Snapshot, "snapshot-table", "", "`name` of the snapshot table; default is what the journal says, in new tables the prefix and \"snapshot\"")
	flags.StringVar(&n.Checkpoint, "checkpoint-table", "", "`name` of the checkpoint table; default is the prefix and \"checkpoint\"")
	flags.StringVar(&n.model, "model-table", "", "`name` of the table of read models; default is the prefix and \""+readmodel.DefaultTable+"\"")
	flags.StringVar(&n.process, "process-table", "", "`name` of the table of process managers; default is the prefix and \""+process.DefaultTable+"\"")
}

// complete sets the names that no flag has set.
func (n *tableNames) complete() {
	n.Journal = cmp.Or(n.Journal, n.prefix+"journal")
	n.Checkpoint = cmp.Or(n.Checkpoint, n.prefix+"checkpoint")
	n.model = cmp.Or(n.model, n.prefix+readmodel.DefaultTable)
	n.process = cmp.Or(n.process, n.prefix+process.DefaultTable)
}

// newSnapshot returns the name of the snapshot table where no journal stores one yet.
func (n *tableNames) newSnapshot() string { return cmp.Or(n.Snapshot, n.prefix+"snapshot") }
