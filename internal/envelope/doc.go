// Package envelope maps Watermill messages to journal events and back. The publisher uses one way
// and the subscriber the other; both export the metadata keys under names of their own.
//
// A message's UUID is the event's id, its payload is the event's payload byte by byte, and its
// metadata is the event's. What the store knows of an event by itself is never stored a second time
// inside the metadata: [Event] leaves those keys out, and [Message] sets them from the store, so
// that a message that is published again cannot carry a wrong place along.
package envelope
