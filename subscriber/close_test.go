package subscriber_test

import (
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Not parallel: it counts the goroutines of the process.
func TestCloseLeavesNoGoroutineBehind(t *testing.T) {
	j := setup(t, 4)
	idle := j.Client().(*dynamodb.Client).Options().HTTPClient.(*http.Client).CloseIdleConnections
	write(t, j, "x", 0, 50)
	idle()
	before := runtime.NumGoroutine()
	for range 3 {
		sub, messages := subscribe(t, quick(j))
		receiveAll(t, messages, 5)
		_, err := sub.Subscribe(t.Context(), topic) // stands by
		require.NoError(t, err)
		receive(t, messages).Nack()
		receive(t, messages) // never answered
		require.NoError(t, sub.Close())
	}
	if !assert.Eventually(t, func() bool {
		idle()
		return runtime.NumGoroutine() <= before+1 // with the one that asks
	}, patience, 10*time.Millisecond, "all goroutines end") {
		stacks := make([]byte, 1<<20)
		t.Logf("%s", stacks[:runtime.Stack(stacks, true)])
	}
}
