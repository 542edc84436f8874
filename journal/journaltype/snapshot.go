package journaltype

// Snapshot is the encoded state of an aggregate after one of its events.
type Snapshot struct {
	// Number is the number of the last event in the state. It is 0 if another program replaced the
	// payload. Only the payload can then contain the number.
	Number  uint64
	Payload []byte // the state, decoded by the encodings of the journal
	// Schema is the version of the state's form, numbered by the writer. It is valid only if Number
	// is not 0.
	Schema uint64
	// Encoding names the applied encodings; see Journal.Raw. It is empty on a decoded snapshot.
	Encoding string
}
