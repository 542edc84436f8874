//go:build !race

package testdb

// Race reports whether the race detector watches the tests, which makes them several times slower.
const Race = false
