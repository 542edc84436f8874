package engine

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
)

func TestATableIsDescribedWhole(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	db := New(Config{Now: func() time.Time { return now }})
	got := describe(t, db, provisioned(locals("lix"), globals("gix"), func(in *dynamodb.CreateTableInput) {
		in.DeletionProtectionEnabled = aws.Bool(true)
		in.TableClass = types.TableClassStandardInfrequentAccess
		in.SSESpecification = &types.SSESpecification{Enabled: aws.Bool(true), KMSMasterKeyId: aws.String("alias/mine")}
	}))

	assert.NoError(t, uuid.Validate(*got.TableId))
	got.TableId = nil
	all := &types.Projection{ProjectionType: types.ProjectionTypeAll}
	units := func(read, write int64) *types.ProvisionedThroughputDescription {
		return &types.ProvisionedThroughputDescription{NumberOfDecreasesToday: aws.Int64(0), ReadCapacityUnits: &read, WriteCapacityUnits: &write}
	}
	assert.Equal(t, &types.TableDescription{
		AttributeDefinitions:      definitions("a", "b", "l", "g"),
		CreationDateTime:          &now,
		DeletionProtectionEnabled: aws.Bool(true),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndexDescription{{
			IndexArn: aws.String("arn:aws:dynamodb:us-east-1:000000000000:table/tab/index/gix"), IndexName: aws.String("gix"),
			IndexSizeBytes: aws.Int64(0), IndexStatus: types.IndexStatusActive, ItemCount: aws.Int64(0), KeySchema: keyOfNames("g"),
			Projection: all, ProvisionedThroughput: units(2, 3),
		}},
		ItemCount: aws.Int64(0),
		KeySchema: keyOfNames("a", "b"),
		LocalSecondaryIndexes: []types.LocalSecondaryIndexDescription{{
			IndexArn: aws.String("arn:aws:dynamodb:us-east-1:000000000000:table/tab/index/lix"), IndexName: aws.String("lix"),
			IndexSizeBytes: aws.Int64(0), ItemCount: aws.Int64(0), KeySchema: keyOfNames("a", "l"), Projection: all,
		}},
		ProvisionedThroughput: units(5, 6),
		SSEDescription: &types.SSEDescription{
			Status: types.SSEStatusEnabled, SSEType: types.SSETypeKms,
			KMSMasterKeyArn: aws.String("arn:aws:kms:us-east-1:000000000000:alias/mine"),
		},
		TableArn:          aws.String("arn:aws:dynamodb:us-east-1:000000000000:table/tab"),
		TableClassSummary: &types.TableClassSummary{TableClass: types.TableClassStandardInfrequentAccess},
		TableName:         aws.String("tab"),
		TableSizeBytes:    aws.Int64(0),
		TableStatus:       types.TableStatusActive,
	}, got)
}

func TestATableBilledByRequestHasNoUnits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	db := New(Config{Now: func() time.Time { return now }})
	got := describe(t, db, byRequest(globals("gix"), func(in *dynamodb.CreateTableInput) {
		in.OnDemandThroughput = &types.OnDemandThroughput{MaxReadRequestUnits: aws.Int64(7)}
	}))
	assert.Equal(t, &types.BillingModeSummary{BillingMode: types.BillingModePayPerRequest, LastUpdateToPayPerRequestDateTime: &now}, got.BillingModeSummary)
	assert.Zero(t, *got.ProvisionedThroughput.ReadCapacityUnits)
	assert.Zero(t, *got.GlobalSecondaryIndexes[0].ProvisionedThroughput.WriteCapacityUnits)
	assert.Equal(t, &types.OnDemandThroughput{MaxReadRequestUnits: aws.Int64(7), MaxWriteRequestUnits: aws.Int64(-1)}, got.OnDemandThroughput)
	assert.Nil(t, got.SSEDescription)
	assert.Nil(t, got.TableClassSummary)
}

func TestATableIsFoundByItsARN(t *testing.T) {
	t.Parallel()
	db := New(Config{})
	want := describe(t, db, byRequest())
	out, err := db.DescribeTable(&dynamodb.DescribeTableInput{TableName: want.TableArn})
	require.NoError(t, err)
	assert.Equal(t, want, out.Table)
}

// DynamoDB Local knows neither TableId nor the region, replies ACTIVE immediately, and returns
// other times.
func TestATableIsDescribedAsDynamoDBLocalDescribesIt(t *testing.T) {
	t.Parallel()
	client, db := dynamolocaltest.Client(t), New(Config{})
	for name, request := range map[string]*dynamodb.CreateTableInput{
		"simple":      byRequest(),
		"provisioned": provisioned(globals("gix")),
		"indexes":     byRequest(locals("lix"), globals("gix")),
		"projection": global(func(ix *types.GlobalSecondaryIndex) {
			ix.Projection = &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"x"}}
		}),
	} {
		for _, to := range []any{client, db} {
			_, err := call(t.Context(), to, name, request)
			require.NoError(t, err)
		}
		want, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
		require.NoError(t, err)
		got, err := db.DescribeTable(&dynamodb.DescribeTableInput{TableName: &name})
		require.NoError(t, err)
		assert.Equal(t, alike(want.Table), alike(got.Table), name)
	}
}

func alike(d *types.TableDescription) *types.TableDescription {
	d.TableId, d.TableArn, d.CreationDateTime, d.WarmThroughput = nil, nil, nil, nil
	if d.BillingModeSummary != nil {
		d.BillingModeSummary.LastUpdateToPayPerRequestDateTime = nil
	}
	d.ProvisionedThroughput.LastDecreaseDateTime, d.ProvisionedThroughput.LastIncreaseDateTime = nil, nil
	for i := range d.GlobalSecondaryIndexes {
		d.GlobalSecondaryIndexes[i].IndexArn, d.GlobalSecondaryIndexes[i].ProvisionedThroughput.NumberOfDecreasesToday = nil, nil
	}
	for i := range d.LocalSecondaryIndexes {
		d.LocalSecondaryIndexes[i].IndexArn = nil
	}
	return d
}

func TestDescribeTableRefuses(t *testing.T) {
	t.Parallel()
	refusedAsExpected(t, describeTableRefusals())
}

func TestDescribeTableRefusesWhatDynamoDBLocalRefuses(t *testing.T) {
	t.Parallel()
	refusedByDynamoDBLocal(t, describeTableRefusals())
}

func describeTableRefusals() []refusal {
	return []refusal{{
		name: "a missing table", request: &dynamodb.DescribeTableInput{},
		code: missing, text: "Requested resource not found: Table: tab not found", local: "Cannot do operations on a non-existent table",
	}}
}
