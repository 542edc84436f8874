package command_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/journal"
)

func TestCreateMakesTablesThatAnApplicationOpens(t *testing.T) {
	t.Parallel()
	s := setup(t)

	out := s.ok(t, "create", "--layout", "classic", "--shards", "8")
	assert.Regexp(t, `(?m)^shards +8$`, out)
	assert.Regexp(t, `(?m)^resolver +fnv1a-64$`, out)
	assert.Regexp(t, `(?m)^layout +classic$`, out)
	assert.Regexp(t, `(?m)^checkpoint +checkpoint +ACTIVE `, out)
	assert.Equal(t, 8, s.open(t, journal.Config{}).Shards())
}

func TestCreateSaysWhatNeverChanges(t *testing.T) {
	t.Parallel()
	s := setup(t)
	o := s.run(t, "create")
	assert.Equal(t, command.ExitUsage, o.code)
	assert.Contains(t, o.err, "new tables need --layout, which never changes: packed is for new applications")
	o = s.run(t, "create", "--layout", "packed")
	assert.Equal(t, command.ExitOK, o.code)
	assert.Equal(t, 16, s.open(t, journal.Config{}).Shards())
	assert.Contains(t, o.err, "with layout packed and 16 shards. The layout and the shard count never change.")

	assert.Empty(t, s.run(t, "create").err, "it creates nothing")
	for _, layout := range []string{"classic", "packed"} {
		o := s.run(t, "create", "--layout", layout, "--shards", "1", "--prefix", layout)
		assert.Contains(t, o.err, "with layout "+layout+" and 1 shard. The layout and the shard count never change.\n")
	}
}

func TestCreateAgainTakesWhatIsStoredAndMakesWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.ok(t, "create", "--shards", "3", "--layout", "classic")
	_, err := s.client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("checkpoint")})
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^checkpoint +checkpoint +MISSING `, s.ok(t, "describe"))

	out := s.ok(t, "create")
	assert.Regexp(t, `(?m)^shards +3$`, out)
	assert.Regexp(t, `(?m)^layout +classic$`, out)
	assert.Regexp(t, `(?m)^checkpoint +checkpoint +ACTIVE `, out)
}

func TestCreateWithAnotherShardCountIsRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.ok(t, "create", "--layout", "classic", "--shards", "8")

	o := s.run(t, "create", "--shards", "16")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "shard count 8, not 16\n")
	assert.Contains(t, o.err, "leave --shards out")
	assert.Empty(t, o.out)
	assert.Equal(t, 8, s.open(t, journal.Config{}).Shards())
}

func TestCreateWithAnotherLayoutIsRefused(t *testing.T) {
	t.Parallel()
	for stored, given := range map[string]string{"classic": "packed", "packed": "classic"} {
		s := setup(t)
		s.ok(t, "create", "--layout", stored)

		o := s.run(t, "create", "--layout", given)
		assert.Equal(t, command.ExitFailure, o.code)
		assert.Contains(t, o.err, "was made with layout "+stored+", not "+given+"\n")
		assert.Contains(t, o.err, "leave --layout out")
		assert.NotContains(t, o.err, "onfig")
	}
}

func TestCreateLeavesTablesOfSomebodyElseAlone(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	deposits(t, s.open(t, journal.Config{}), account("1"), 1, 1)
	_, err := s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String("journal"), Key: keyOf("millrace", "descriptor"),
	})
	require.NoError(t, err)

	o := s.run(t, "create", "--layout", "classic")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "Millrace has not created these tables")
}

func TestCreateProvisionsCapacity(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.ok(t, "create", "--layout", "classic", "--billing", "provisioned", "--read-units", "7", "--write-units", "9")

	out, err := s.client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("snapshot")})
	require.NoError(t, err)
	assert.Equal(t, int64(7), *out.Table.ProvisionedThroughput.ReadCapacityUnits)
	assert.Equal(t, int64(9), *out.Table.ProvisionedThroughput.WriteCapacityUnits)
	described := lines(t, s.ok(t, "describe", "--json"))
	assert.Equal(t, "provisioned", described[0]["tables"].([]any)[0].(map[string]any)["billing"])
}

func TestTablesCanHaveOtherNames(t *testing.T) {
	t.Parallel()
	s := setup(t)
	names := []string{"--journal-table", "orders", "--snapshot-table", "order-heads", "--checkpoint-table", "order-readers"}
	s.ok(t, append([]string{"create", "--layout", "classic"}, names...)...)

	assert.Regexp(t, `(?m)^snapshot +order-heads `, s.ok(t, "describe", "--journal-table", "orders"),
		"the journal says which snapshot table it has")
	o := s.run(t, "describe", "--journal-table", "orders", "--snapshot-table", "heads")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, `snapshot table "order-heads", the config says "heads"`)
}

func TestDescribeIsAnObject(t *testing.T) {
	t.Parallel()
	s := setupTables(t)

	described := lines(t, s.ok(t, "describe", "--json"))
	require.Len(t, described, 1)
	assert.Equal(t, "journal", described[0]["kind"])
	assert.InDelta(t, 4, described[0]["shards"], 0)
	assert.Equal(t, "seq_nr", described[0]["attributes"].(map[string]any)["sequence_number"])
	table := described[0]["tables"].([]any)[0].(map[string]any)
	assert.Equal(t, "journal", table["name"])
	assert.ElementsMatch(t, []any{"journal-aid-index", "journal-tail-index"}, table["indexes"])
}
