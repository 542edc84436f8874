//go:build go1.25

package testdb

import (
	"testing"
	"testing/synctest"
)

// WithFakeTime runs a test in a bubble of testing/synctest, on dynamotest: its clock moves only
// while all goroutines wait, so a time limit covers the same steps on a slow machine as on a fast
// one. The test calls neither Parallel nor Run in it. It is skipped on DynamoDB Local, whose
// replies the bubble cannot wait for.
func WithFakeTime(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if IsLocal() {
		t.Skip("needs a database in the bubble, which dynamotest is")
	}
	synctest.Test(t, test)
}
