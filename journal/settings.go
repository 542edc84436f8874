package journal

// EngineSettings are the settings of a journal, with all defaults. Package journal describes them.
type EngineSettings struct {
	TableSettings

	Layout            Layout
	EventType         func(*Record) (string, error)
	Encodings         []Encoding
	RequiredEncodings []string
}
