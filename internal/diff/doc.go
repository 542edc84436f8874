// Package diff compares what a test expects with what it got, for the packages that test aggregates
// and process managers in memory.
//
// Values are compared with their contents, unexported fields included: by their own method Equal(T)
// bool where they have one, as time.Time does, and field by field otherwise. Nil and empty slices
// and maps count as equal, and so do a nil and an empty Protocol Buffers message.
package diff
