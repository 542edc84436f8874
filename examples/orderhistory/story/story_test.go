package story_test

import (
	"bytes"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/orderhistory/story"
	"github.com/millrace-dev/millrace/internal/testdb"
)

func TestTheStoryEndsWell(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	var out, log bytes.Buffer

	report, err := story.Run(t.Context(), client, story.Config{Seed: 1, Orders: 60, Consumers: 4, Writers: 8, Out: &out, Log: &log})

	require.NoError(t, err, "%s%s", &out, &log)
	assert.Empty(t, report.Differences)
	assert.Equal(t, 60, report.Orders)
	assert.Positive(t, report.Refused)
	assert.Positive(t, report.SentAgain)
	assert.Positive(t, report.Throttled)
	assert.Positive(t, report.Repeated, "policies must handle messages again")
	assert.Positive(t, report.Late, "the history must be told old events")
	assert.Len(t, report.Delivered, 3, "a consumer must be restarted, and another crash")
	assert.NotContains(t, report.Delivered, uint64(0), "the restarts must come in the middle of the story")
	assert.Positive(t, report.Duplicates)
	assert.Greater(t, report.Pages, report.Questions, "an answer must take several pages")
	assert.Contains(t, out.String(), "Every order's history is exactly right.\n")

	tables, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	require.NoError(t, err)
	assert.Empty(t, tables.TableNames, "the story must clean up")
}
