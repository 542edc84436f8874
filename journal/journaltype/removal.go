package journaltype

import (
	"time"
)

// RemoveOptions configures how Journal.Truncate and Journal.Delete remove events. The zero value
// deletes them at once, even if a consumer group has not read them: the group skips them.
type RemoveOptions struct {
	// After, if positive, lets DynamoDB's time to live delete the events after this duration,
	// within a few further days. Consumer groups that lag behind can read them until then. The
	// journal table needs time to live on its TTL attribute, which journal.Create turns on. The
	// layout Packed refuses After. Default: 0, which deletes at once.
	After time.Duration
	// Progress, if set, is called with the number of events that were removed or marked so far, at
	// least after every 500 events.
	Progress func(events int)
}
