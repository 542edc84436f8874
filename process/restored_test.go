package process_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/process"
)

// TestATimeoutThatHasFiredBeforeIsRemoved restores the table of processes from a time before the
// timeout has fired.
func TestATimeoutThatHasFiredBeforeIsRemoved(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	before, err := w.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(process.DefaultTable)})
	require.NoError(t, err)
	w.pass(deadline)
	require.Equal(t, 1, w.fire(m))
	for _, row := range before.Items {
		_, err := w.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(process.DefaultTable), Item: row})
		require.NoError(t, err)
	}
	w.fire(m)
	_, version := w.saga(m, "o1")
	assert.EqualValues(t, 2, version, "it has no effect again")
	w.pass(time.Hour)
	assert.Zero(t, w.fire(m), "it is gone")
}
