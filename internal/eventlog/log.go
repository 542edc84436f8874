package eventlog

import (
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// Log is a journal with all methods that the packages of this module use.
type Log struct {
	*journal.Journal
	Engine
}

// Of returns the log of a journal, and the zero Log for nil.
func Of(j *journal.Journal) Log {
	if j == nil {
		return Log{}
	}
	return Log{Journal: j, Engine: storage.Engine(j).(Engine)}
}

// Raw returns the log of Journal.Raw. Its Append stores payloads and Encoding unchanged, for
// callers that copy a journal. An encoding may bind a payload to its journal.Place. Such a payload
// can only be copied to the same aggregate and number.
//
// Otherwise it is the same journal: its commits wake the watchers of the original.
func (l Log) Raw() Log { return Of(l.Journal.Raw()) }
