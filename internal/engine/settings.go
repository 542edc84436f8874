package engine

import (
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Settings are the settings of a journal, with all defaults. Package journal describes them.
type Settings struct {
	table.Settings

	Layout            journaltype.Layout
	EventType         func(*journaltype.Record) (string, error)
	Encodings         []journaltype.Encoding
	RequiredEncodings []string
	RequiredByType    map[string][]string
}
