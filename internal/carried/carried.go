// Package carried has the key under which contexts carry metadata for events. It stands between
// package aggregate, which reads it, and the subscriber, whose contexts of messages make the
// metadata when somebody asks for it.
package carried

// Key is the key of an aggregate.Metadata, which is not to be changed.
type Key struct{}
