// Package carried has the key under which contexts carry metadata for events. Package aggregate
// reads the metadata. The contexts of messages in package subscriber build it only when it is
// requested.
package carried

// Key is the key of an aggregate.Metadata. The metadata must not be changed.
type Key struct{}
