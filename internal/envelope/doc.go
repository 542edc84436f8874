// Package envelope maps Watermill messages to journal events and back. Package publisher uses one
// direction and package subscriber the other. Both export the metadata keys under their own names.
//
// The UUID of a message is the event's id. Payload and metadata are those of the event. Values that
// the journal stores elsewhere are not stored in the metadata again: [Event] leaves these keys out,
// and [Message] sets them from the record. So a message that is published again cannot have a wrong
// place.
package envelope
