package publisher

import (
	"fmt"
	"strconv"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/envelope"
)

// ExpectVersion makes Publish append the message only if its aggregate then has exactly this
// version, which is the number of its events; 0 means that the aggregate must not exist yet.
// Otherwise nothing of the Publish is written to that aggregate, and the error wraps a
// *journal.ConflictError.
//
// Of several messages to one aggregate in one Publish it is for the first, and the rest follow in
// the same commit: together they must fit into one transaction, 99 events and 4 MB. A later one may
// say what it expects too, as long as that is the version which the ones before it lead to.
//
// It sets the metadata expected_version, which is not stored.
func ExpectVersion(msg *message.Message, version uint64) {
	if msg == nil {
		return // Publish refuses it
	}
	if msg.Metadata == nil {
		msg.Metadata = message.Metadata{}
	}
	msg.Metadata.Set(envelope.ExpectedVersionKey, strconv.FormatUint(version, 10))
}

// expectation is the version that a message expects, if it expects one.
func expectation(msg *message.Message) (version uint64, given bool, err error) {
	text, given := msg.Metadata[envelope.ExpectedVersionKey]
	if !given {
		return 0, false, nil
	}
	version, err = strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, true, fmt.Errorf("metadata %s is %s, which is no version: set it with publisher.ExpectVersion", envelope.ExpectedVersionKey, quote(text))
	}
	return version, true, nil
}
