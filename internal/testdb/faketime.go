//go:build go1.25

package testdb

import (
	"testing"
	"testing/synctest"
)

// WithFakeTime runs a test on dynamotest in a bubble of testing/synctest. The clock of the bubble
// moves only while all goroutines wait, so a time limit covers the same steps on a slow machine as
// on a fast one. The test must call neither Parallel nor Run. It is skipped on DynamoDB Local,
// because the bubble cannot wait for its replies.
func WithFakeTime(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if IsLocal() {
		t.Skip("needs dynamotest, whose database runs inside of the bubble")
	}
	synctest.Test(t, test)
}
