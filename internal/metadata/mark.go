package metadata

import (
	"hash/fnv"
	"strconv"

	"github.com/millrace-dev/millrace/aggregate"
)

// OwnStreamKey marks an event of a queue: of a message without an aggregate id, in the stream of
// its publisher, or of a message to one of publisher.Config.Queues. It holds the
// [StreamMark] of the stream. Only the journal stores it, for a publisher, and messages do not have
// it.
const OwnStreamKey = "own_stream"

// StreamMark returns the value of [OwnStreamKey] on the events of a publisher's own stream. It is
// short, because each event has it. It depends on the stream, so a copy of the metadata in another
// aggregate is not a valid mark there.
func StreamMark(id aggregate.ID) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id.String()))
	return strconv.FormatUint(uint64(hash.Sum32()), 36)
}
