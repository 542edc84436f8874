// Package rows reads the replies to a Query and to a BatchGetItem as rows. The SDK makes a map for
// each item and a value for each attribute of it, which is most of what it costs a process to read
// a history. Package rows uses the SDK's own parser, through the interfaces that the SDK has for
// that, and keeps the attributes of an item in a list, whose memory the next item uses again. All
// else of a reply is read as the SDK does.
//
// Tests compare it with the SDK's own decoding, so an update of the SDK that changes something
// fails there.
package rows
