package journal_test

import (
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
)

// requireExpiry requires time to live on the attribute of the config, for the tables that have one.
func requireExpiry(t *testing.T, client *dynamodb.Client, c journal.Config, attribute string) {
	t.Helper()
	for table, want := range map[string]string{c.Tables.Journal: attribute, c.Tables.Snapshot: attribute, c.Tables.Checkpoint: ""} {
		out, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
		require.NoError(t, err)
		require.Equal(t, want, aws.ToString(out.TimeToLiveDescription.AttributeName), table)
	}
}

func TestCreateTurnsTimeToLiveOnOnceOrOften(t *testing.T) {
	t.Parallel()
	client, config := database(t), ownTables(journal.Config{Layout: journal.Classic, Shards: 4})
	config.Classic.Attributes.TTL = "expires_at"
	for range 2 {
		require.NoError(t, journal.Create(t.Context(), client, config))
		requireExpiry(t, client, config, "expires_at")
	}
}

func TestCreateByManyAtOnceTurnsTimeToLiveOn(t *testing.T) {
	t.Parallel()
	client, config := database(t), ownTables(journal.Config{Layout: journal.Classic, Shards: 4})
	var all sync.WaitGroup
	for range 6 {
		all.Add(1)
		go func() {
			defer all.Done()
			assert.NoError(t, journal.Create(t.Context(), client, config))
		}()
	}
	all.Wait()
	requireExpiry(t, client, config, "ttl")
}

// A process that describes the table before another process enables time to live is refused when it
// does the same.
func TestCreateLooksAgainWhenAnotherProcessTurnsTimeToLiveOn(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	config := ownTables(journal.Config{Layout: journal.Classic, Shards: 4})
	other := db.Client()
	once := sync.Once{}
	db.Inject(dynamotest.Refuse(&smithy.GenericAPIError{Code: "ValidationException", Message: "TimeToLive is already enabled"}),
		dynamotest.On("UpdateTimeToLive"), dynamotest.Times(1), dynamotest.Matching(func(_ string, input any) bool {
			return aws.ToString(input.(*dynamodb.UpdateTimeToLiveInput).TableName) == config.Tables.Journal
		}))
	db.Observe(func(call dynamotest.Call) {
		if call.Operation == "UpdateTimeToLive" && call.Err != nil {
			once.Do(func() {
				_, err := other.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
					TableName:               &config.Tables.Journal,
					TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
				})
				assert.NoError(t, err)
			})
		}
	})

	require.NoError(t, journal.Create(t.Context(), db.Client(), config))

	requireExpiry(t, db.Client(), config, "ttl")
}

func TestCreateRefusesTimeToLiveOnAnotherAttribute(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	config := ownTables(journal.Config{Layout: journal.Classic, Shards: 4})
	require.NoError(t, journal.Create(t.Context(), s.client, config))
	_, err := s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &config.Tables.Journal, Key: item{"pkey": text("millrace"), "skey": text("descriptor")},
	})
	require.NoError(t, err)
	config.Classic.Attributes.TTL = "expires_at"

	err = journal.Create(t.Context(), s.client, config)

	var mismatch *journal.DescriptorMismatchError
	require.ErrorAs(t, err, &mismatch)
	assert.Equal(t, journal.DescriptorMismatchError{
		Table: config.Tables.Journal, Field: "time to live on attribute", Stored: "ttl", Given: "expires_at",
	}, *mismatch)
}

func TestCreateNeedsThePermissionToTurnTimeToLiveOn(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"DescribeTimeToLive", "UpdateTimeToLive"} {
		db := dynamotest.New(t)
		config := ownTables(journal.Config{Layout: journal.Classic, Shards: 4})
		db.Inject(dynamotest.Refuse(&smithy.GenericAPIError{Code: "AccessDeniedException", Message: "says the test"}), dynamotest.On(operation))
		err := journal.Create(t.Context(), db.Client(), config)
		require.ErrorIs(t, err, journal.ErrAccess, operation)
		assert.ErrorContains(t, err, config.Tables.Journal)
	}
}

func TestCreateOfWhatWasCreatedNeedsNoSuchPermission(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	config := ownTables(journal.Config{Layout: journal.Classic, Shards: 4})
	require.NoError(t, journal.Create(t.Context(), db.Client(), config))
	db.Inject(dynamotest.Refuse(&smithy.GenericAPIError{Code: "AccessDeniedException", Message: "says the test"}),
		dynamotest.On("DescribeTimeToLive", "UpdateTimeToLive"))
	require.NoError(t, journal.Create(t.Context(), db.Client(), config))
}

func TestCreateStopsTurningTimeToLiveOnWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	ctx, cancel := cancellable(t)
	db.Inject(dynamotest.Refuse(&smithy.GenericAPIError{Code: "ResourceInUseException", Message: "says the test"}), dynamotest.On("UpdateTimeToLive"),
		dynamotest.Matching(func(string, any) bool { cancel(); return true }))
	require.Error(t, journal.Create(ctx, db.Client(), ownTables(journal.Config{Layout: journal.Classic, Shards: 4})))
}
