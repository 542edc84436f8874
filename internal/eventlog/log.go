package eventlog

import (
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// Log is a journal with all that the packages of this module use of it.
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

// Raw returns the log of Journal.Raw. Its Append stores payloads and Encoding as they are given,
// for callers that copy a journal. An encoding may bind a payload to its journal.Place, so it can
// be copied to the same aggregate and number only.
//
// It is the same journal otherwise: commits through it wake the watchers of the other.
func (l Log) Raw() Log { return Of(l.Journal.Raw()) }
