package envelope

import (
	"hash/fnv"
	"strconv"

	"github.com/millrace-dev/millrace/aggregate"
)

// StreamMark is the value of [OwnStreamKey] on the events of a publisher's own stream. It is short,
// as each event has it, and depends on the stream, so a copy of an event's metadata in another
// aggregate is no mark there.
func StreamMark(id aggregate.ID) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id.String()))
	return strconv.FormatUint(uint64(hash.Sum32()), 36)
}
