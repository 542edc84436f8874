// Package diff compares expected with actual values, for the packages that test aggregates and
// process managers in memory.
//
// It compares contents, including unexported fields. It uses the method Equal(T) bool of a type if
// there is one, as for time.Time, and compares field by field otherwise. Nil and empty slices and
// maps count as equal, and so do a nil and an empty Protocol Buffers message.
package diff
