package command_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/resolver"
)

// ofAnotherProgram creates tables with their own names, aggregates of three events, and no
// descriptor.
func ofAnotherProgram(t *testing.T) *shell {
	t.Helper()
	s := setup(t)
	config := journal.Config{
		Layout: journal.Classic, Shards: 4, Classic: journal.ClassicOptions{
			Resolver: resolver.JSHash, OccurredAtUnit: time.Nanosecond,
			Attributes: journal.Attributes{PartitionKey: "hash", SortKey: "range", AggregateID: "name", SequenceNumber: "ser_nr", OccurredAt: "time"},
			Indexes:    journal.Indexes{JournalAggregate: "by-name", JournalTail: "by-time", SnapshotAggregate: "snapshots-by-name"},
		},
	}
	require.NoError(t, journal.Create(t.Context(), s.client, config))
	for _, id := range []string{"1", "2", "3", "4"} {
		deposits(t, s.open(t, config), account(id), 1, 3)
	}
	_, err := s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("journal"), Key: map[string]types.AttributeValue{
		"hash": &types.AttributeValueMemberS{Value: "millrace"}, "range": &types.AttributeValueMemberS{Value: "descriptor"},
	}})
	require.NoError(t, err)
	return s
}

func TestAdoptTakesOverTablesWithNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := ofAnotherProgram(t)
	o := s.run(t, "describe")
	assert.Contains(t, o.err, "`millrace adopt` adopts them")

	out := s.ok(t, "adopt", "--shards", "4", "--resolver", "js-hash")
	assert.Regexp(t, `(?m)^resolver +js-hash$`, out)
	assert.Regexp(t, `(?m)^time unit +nanoseconds$`, out)
	assert.Regexp(t, `(?m)^attributes +hash, range, name, ser_nr, payload, time, version, ttl$`, out)
	assert.Contains(t, s.ok(t, "stream", "account", "1"), "account.deposited")
	s.ok(t, "adopt", "--shards", "4", "--resolver", "js-hash")
}

func TestAdoptRefusesWhatTheSnapshotsDoNotHave(t *testing.T) {
	t.Parallel()
	s := ofAnotherProgram(t)
	o := s.run(t, "adopt", "--shards", "5", "--resolver", "js-hash")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "5 shards")
	o = s.run(t, "adopt", "--shards", "4", "--resolver", "js-hash", "--time-unit", "seconds")
	assert.Equal(t, command.ExitUsage, o.code)
	assert.Contains(t, o.err, "nanoseconds")

	empty := setup(t)
	o = empty.run(t, "adopt", "--shards", "4", "--resolver", "js-hash")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "adopt needs tables that exist")
}

func TestCreateStoresRequiredEncodings(t *testing.T) {
	t.Parallel()
	s := setup(t)
	assert.Regexp(t, `(?m)^required encodings +aes-gcm$`, s.ok(t, "create", "--layout", "packed", "--require-encoding", "aes-gcm"))
	assert.Regexp(t, `(?m)^required encodings +aes-gcm$`, s.ok(t, "create"))
	o := s.run(t, "create", "--require-encoding", "person=aes-gcm", "--require-encoding", "note=gzip")
	assert.Equal(t, command.ExitOK, o.code, o.err)
	assert.Regexp(t, `(?m)^required of note +gzip$`, s.ok(t, "create"))
	assert.Contains(t, s.ok(t, "describe", "--json"), `"required_by_type":{"note":["gzip"],"person":["aes-gcm"]}`)
	o = s.run(t, "create", "--require-encoding", "=gzip")
	assert.Equal(t, command.ExitUsage, o.code)
	o = s.run(t, "create", "--require-encoding", "gzip")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "required encodings")
}
