// Package diff compares expected with actual values, for the packages that test aggregates and
// process managers in memory. The comparison and its text are those of github.com/google/go-cmp.
//
// It compares contents, including unexported fields. It uses the method Equal of a type if there is
// one, as for time.Time, and compares field by field otherwise. Nil and empty slices and maps count
// as equal, and so do a nil and an empty Protocol Buffers message, two functions and two channels.
// NaN equals NaN.
package diff
