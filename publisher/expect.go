package publisher

import (
	"fmt"
	"strconv"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/envelope"
	"github.com/millrace-dev/millrace/internal/printable"
)

// SetExpectedVersion makes Publish append the message only if its aggregate has this version. The
// version is the number of events of the aggregate; 0 means that the aggregate must not exist. If
// the version is different, nothing of the Publish is written to that aggregate, and the error
// wraps a *journal.ConflictError.
//
// If one Publish has several messages for an aggregate, call it for the first of them. The others
// follow in the same commit, so all of them must fit into one transaction: 99 events and 4 MB. A
// later message may also expect a version, if it is the version after the messages before it.
//
// SetExpectedVersion sets the metadata expected_version, which is not stored.
func SetExpectedVersion(msg *message.Message, version uint64) {
	if msg == nil {
		return // Publish refuses it
	}
	if msg.Metadata == nil {
		msg.Metadata = message.Metadata{}
	}
	msg.Metadata.Set(envelope.ExpectedVersionKey, strconv.FormatUint(version, 10))
}

// expectation returns the version that a message expects, and whether it expects one.
func expectation(msg *message.Message) (version uint64, given bool, err error) {
	text, given := msg.Metadata[envelope.ExpectedVersionKey]
	if !given {
		return 0, false, nil
	}
	version, err = strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, true, fmt.Errorf("metadata %s is %s, which is not a version: set it with publisher.SetExpectedVersion", envelope.ExpectedVersionKey, printable.Quote(text))
	}
	return version, true, nil
}
