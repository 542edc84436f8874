//go:build !go1.25

package testdb

import "testing"

// WithFakeTime skips the test: testing/synctest came with Go 1.25.
func WithFakeTime(t *testing.T, _ func(t *testing.T)) {
	t.Helper()
	t.Skip("left to Go 1.25 or later, which has testing/synctest")
}
