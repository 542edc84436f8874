package journal

// settings are the settings of a journal, with all defaults. Package journal describes them.
type settings struct {
	tableSettings

	Layout            Layout
	EventType         func(*Record) (string, error)
	Encodings         []Encoding
	RequiredEncodings []string
}
