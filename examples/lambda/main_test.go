package main

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
)

// Each takes DynamoDB Local about 130 requests.
var bookings = flag.Int("lambda.bookings", 40, "number of bookings")

// TestMain runs a function if the machine has started this program.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		start()
	}
	os.Exit(m.Run())
}

func TestBookingsAreRightAlthoughFunctionsAreKilled(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	stats, err := show(t.Context(), dynamolocaltest.Client(t), options{
		bookings: *bookings, kills: true, seed: 1, sweep: time.Second, timeout: 4 * time.Second, patience: 4 * time.Second, out: &out,
	})
	t.Log(out.String())
	require.NoError(t, err)
	assert.NotZero(t, stats[api].Kills)
	assert.NotZero(t, stats[consumer].Kills)
}
