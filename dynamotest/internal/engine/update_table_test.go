package engine

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func addIndex(name string, key ...string) types.GlobalSecondaryIndexUpdate {
	return types.GlobalSecondaryIndexUpdate{Create: &types.CreateGlobalSecondaryIndexAction{
		IndexName: &name, KeySchema: keyOfNames(key...), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
	}}
}

func removeIndex(name string) types.GlobalSecondaryIndexUpdate {
	return types.GlobalSecondaryIndexUpdate{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: &name}}
}

func changeIndex(name string, read, write int64) types.GlobalSecondaryIndexUpdate {
	return types.GlobalSecondaryIndexUpdate{Update: &types.UpdateGlobalSecondaryIndexAction{
		IndexName: &name, ProvisionedThroughput: capacity(read, write),
	}}
}

func updateIndexes(attributes []types.AttributeDefinition, updates ...types.GlobalSecondaryIndexUpdate) *dynamodb.UpdateTableInput {
	return &dynamodb.UpdateTableInput{AttributeDefinitions: attributes, GlobalSecondaryIndexUpdates: updates}
}

// afterUpdate returns the reply to a request, and the description after it.
func afterUpdate(t *testing.T, db *Database, in *dynamodb.UpdateTableInput) (reply, after *types.TableDescription) {
	t.Helper()
	out, err := call(t.Context(), db, "tab", in)
	require.NoError(t, err)
	described, err := db.DescribeTable(&dynamodb.DescribeTableInput{TableName: aws.String("tab")})
	require.NoError(t, err)
	return out.(*dynamodb.UpdateTableOutput).TableDescription, described.Table
}

func TestANewIndexHasTheItemsThatAreThere(t *testing.T) {
	t.Parallel()
	db := New(Config{})
	describe(t, db, byRequest())
	for _, item := range []map[string]types.AttributeValue{
		{"a": &types.AttributeValueMemberS{Value: "1"}, "g": &types.AttributeValueMemberS{Value: "x"}},
		{"a": &types.AttributeValueMemberS{Value: "2"}, "g": &types.AttributeValueMemberS{Value: "x"}},
		{"a": &types.AttributeValueMemberS{Value: "3"}, "g": &types.AttributeValueMemberBOOL{Value: true}},
		{"a": &types.AttributeValueMemberS{Value: "4"}},
	} {
		_, err := db.PutItem(&Cost{}, &dynamodb.PutItemInput{TableName: aws.String("tab"), Item: item})
		require.NoError(t, err)
	}

	reply, after := afterUpdate(t, db, updateIndexes(definitions("g", "unused"), addIndex("gix", "g")))
	assert.Equal(t, types.TableStatusUpdating, reply.TableStatus)
	assert.Equal(t, types.IndexStatusCreating, reply.GlobalSecondaryIndexes[0].IndexStatus)
	assert.Equal(t, types.TableStatusActive, after.TableStatus)
	assert.Equal(t, types.IndexStatusActive, after.GlobalSecondaryIndexes[0].IndexStatus)
	assert.Equal(t, int64(4), *after.ItemCount)
	assert.Equal(t, int64(2), *after.GlobalSecondaryIndexes[0].ItemCount, "items without the key, or with one of another type, stay out")
	assert.Equal(t, int64(8), *after.GlobalSecondaryIndexes[0].IndexSizeBytes)
	assert.Equal(t, definitions("a", "g"), after.AttributeDefinitions, "what no key has is dropped")
}

func TestARemovedIndexTakesItsAttributesAlong(t *testing.T) {
	t.Parallel()
	db := New(Config{})
	describe(t, db, byRequest(locals("lix"), globals("gix", "hix")))

	reply, after := afterUpdate(t, db, updateIndexes(nil, removeIndex("gix")))
	assert.Len(t, reply.GlobalSecondaryIndexes, 2)
	assert.Equal(t, types.IndexStatusDeleting, reply.GlobalSecondaryIndexes[1].IndexStatus)
	assert.Len(t, after.GlobalSecondaryIndexes, 1)
	assert.Equal(t, definitions("a", "b", "l", "g"), after.AttributeDefinitions, "hix has the key too")

	_, after = afterUpdate(t, db, updateIndexes(nil, removeIndex("hix")))
	assert.Empty(t, after.GlobalSecondaryIndexes)
	assert.Len(t, after.LocalSecondaryIndexes, 1)
	assert.Equal(t, definitions("a", "b", "l"), after.AttributeDefinitions)
}

func TestThroughputOfATableAndItsIndexesChanges(t *testing.T) {
	t.Parallel()
	db := New(Config{})
	describe(t, db, provisioned(globals("gix", "hix")))

	in := updateIndexes(nil, changeIndex("gix", 8, 9))
	in.ProvisionedThroughput = capacity(10, 11)
	reply, after := afterUpdate(t, db, in)
	assert.Equal(t, types.IndexStatusUpdating, reply.GlobalSecondaryIndexes[0].IndexStatus)
	assert.Equal(t, types.IndexStatusActive, reply.GlobalSecondaryIndexes[1].IndexStatus)
	assert.Equal(t, int64(11), *after.ProvisionedThroughput.WriteCapacityUnits)
	assert.Equal(t, int64(9), *after.GlobalSecondaryIndexes[0].ProvisionedThroughput.WriteCapacityUnits)
	assert.Equal(t, int64(3), *after.GlobalSecondaryIndexes[1].ProvisionedThroughput.WriteCapacityUnits)
	assert.Nil(t, after.BillingModeSummary)
}

func TestBillingChangesWithAllIndexes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	db := New(Config{Now: func() time.Time { return now }})
	describe(t, db, provisioned(globals("gix")))

	now = now.Add(time.Hour)
	_, after := afterUpdate(t, db, &dynamodb.UpdateTableInput{BillingMode: types.BillingModePayPerRequest})
	assert.Equal(t, &types.BillingModeSummary{BillingMode: types.BillingModePayPerRequest, LastUpdateToPayPerRequestDateTime: &now}, after.BillingModeSummary)
	assert.Zero(t, *after.ProvisionedThroughput.ReadCapacityUnits)
	assert.Zero(t, *after.GlobalSecondaryIndexes[0].ProvisionedThroughput.ReadCapacityUnits)

	back := updateIndexes(nil, changeIndex("gix", 3, 4))
	back.BillingMode, back.ProvisionedThroughput = types.BillingModeProvisioned, capacity(1, 2)
	_, after = afterUpdate(t, db, back)
	assert.Equal(t, &types.BillingModeSummary{BillingMode: types.BillingModeProvisioned, LastUpdateToPayPerRequestDateTime: &now}, after.BillingModeSummary)
	assert.Equal(t, int64(2), *after.ProvisionedThroughput.WriteCapacityUnits)
	assert.Equal(t, int64(4), *after.GlobalSecondaryIndexes[0].ProvisionedThroughput.WriteCapacityUnits)
}

func TestSettingsChangeOneByOne(t *testing.T) {
	t.Parallel()
	db := New(Config{})
	describe(t, db, byRequest(globals("gix")))
	for _, in := range []*dynamodb.UpdateTableInput{
		{DeletionProtectionEnabled: aws.Bool(true)},
		{TableClass: types.TableClassStandardInfrequentAccess},
		{SSESpecification: &types.SSESpecification{Enabled: aws.Bool(true)}},
		{OnDemandThroughput: &types.OnDemandThroughput{MaxReadRequestUnits: aws.Int64(7)}},
		{OnDemandThroughput: &types.OnDemandThroughput{MaxWriteRequestUnits: aws.Int64(8)}},
		{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Update: &types.UpdateGlobalSecondaryIndexAction{
			IndexName: aws.String("gix"), OnDemandThroughput: &types.OnDemandThroughput{MaxReadRequestUnits: aws.Int64(9)},
		}}}},
	} {
		afterUpdate(t, db, in)
	}
	_, after := afterUpdate(t, db, &dynamodb.UpdateTableInput{BillingMode: types.BillingModePayPerRequest})
	assert.True(t, *after.DeletionProtectionEnabled)
	assert.Equal(t, types.TableClassStandardInfrequentAccess, after.TableClassSummary.TableClass)
	assert.Equal(t, types.SSEStatusEnabled, after.SSEDescription.Status)
	assert.Equal(t, &types.OnDemandThroughput{MaxReadRequestUnits: aws.Int64(7), MaxWriteRequestUnits: aws.Int64(8)}, after.OnDemandThroughput)
	assert.Equal(t, int64(9), *after.GlobalSecondaryIndexes[0].OnDemandThroughput.MaxReadRequestUnits)
}

func TestARefusedUpdateChangesNothing(t *testing.T) {
	t.Parallel()
	db := New(Config{})
	before := describe(t, db, provisioned(globals("gix")))
	in := updateIndexes(definitions("h"), addIndex("hix", "h"), changeIndex("gix", 8, 9), changeIndex("none", 1, 1))
	in.GlobalSecondaryIndexUpdates[0].Create.ProvisionedThroughput = capacity(1, 1)
	in.ProvisionedThroughput, in.DeletionProtectionEnabled = capacity(10, 11), aws.Bool(true)
	_, err := call(t.Context(), db, "tab", in)
	assertAPIError(t, err, validation, "The table does not have the specified index: none")
	after, err := db.DescribeTable(&dynamodb.DescribeTableInput{TableName: aws.String("tab")})
	require.NoError(t, err)
	assert.Equal(t, before, after.Table)
}

func TestUpdateTableRefuses(t *testing.T) {
	t.Parallel()
	refusedAsExpected(t, updateTableRefusals())
}

func TestUpdateTableRefusesWhatDynamoDBLocalRefuses(t *testing.T) {
	t.Parallel()
	refusedByDynamoDBLocal(t, updateTableRefusals())
}

func updateTableRefusals() []refusal {
	plain := func() []any { return []any{byRequest()} }
	indexed := func() []any { return []any{byRequest(globals("gix"))} }
	units := func() []any { return []any{provisioned(globals("gix"))} }
	nothing := "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates " +
		"or SSESpecification or ReplicaUpdates is required"
	oneAtATime := "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"
	onePerIndex := "Only one global secondary index update per index is allowed simultaneously."
	same := "The requested throughput value equals the current value"
	return []refusal{
		{
			name: "a missing table", request: &dynamodb.UpdateTableInput{BillingMode: types.BillingModePayPerRequest},
			code: missing, text: "Requested resource not found: Table: tab not found", local: "Cannot do operations on a non-existent table",
		},
		{
			name: "nothing to change", before: plain(), request: &dynamodb.UpdateTableInput{},
			code: validation, text: nothing, local: "Nothing to update",
		},
		{
			name: "definitions alone", before: plain(), request: &dynamodb.UpdateTableInput{AttributeDefinitions: definitions("a")},
			code: validation, text: nothing, local: "Nothing to update",
		},
		{
			name: "to be provisioned without throughput", before: plain(),
			request: &dynamodb.UpdateTableInput{BillingMode: types.BillingModeProvisioned},
			code:    validation, text: wrong + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
			local: "No provisioned throughput specified for the table",
		},
		{
			name: "to be provisioned without throughput of an index", before: indexed(),
			request: &dynamodb.UpdateTableInput{BillingMode: types.BillingModeProvisioned, ProvisionedThroughput: capacity(1, 1)},
			code:    validation, text: wrong + "ProvisionedThroughput must be specified for index: gix", differs: takenByLocal,
		},
		{
			name: "throughput of a table billed by request", before: plain(),
			request: &dynamodb.UpdateTableInput{ProvisionedThroughput: capacity(1, 1)},
			code:    validation, text: wrong + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST",
			differs: takenByLocal,
		},
		{
			name: "throughput of a table to be billed by request", before: units(),
			request: &dynamodb.UpdateTableInput{BillingMode: types.BillingModePayPerRequest, ProvisionedThroughput: capacity(1, 1)},
			code:    validation, text: wrong + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST",
			differs: takenByLocal,
		},
		{
			name: "throughput of an index billed by request", before: indexed(), request: updateIndexes(nil, changeIndex("gix", 1, 1)),
			code: validation, text: wrong + "ProvisionedThroughput should not be specified for index: gix when BillingMode is PAY_PER_REQUEST",
			differs: takenByLocal,
		},
		{
			name: "throughput of a table as it is", before: units(), request: &dynamodb.UpdateTableInput{ProvisionedThroughput: capacity(5, 6)},
			code: validation,
			text: "The provisioned throughput for the table will not change. The requested value equals the current value. " +
				"Current ReadCapacityUnits provisioned for the table: 5. Requested ReadCapacityUnits: 5. " +
				"Current WriteCapacityUnits provisioned for the table: 6. Requested WriteCapacityUnits: 6. " +
				"Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.",
			local: same,
		},
		{
			name: "throughput of an index as it is", before: units(), request: updateIndexes(nil, changeIndex("gix", 2, 3)),
			code: validation,
			text: "The provisioned throughput for the index gix will not change. The requested value equals the current value. " +
				"Current ReadCapacityUnits provisioned for the index gix: 2. Requested ReadCapacityUnits: 2. " +
				"Current WriteCapacityUnits provisioned for the index gix: 3. Requested WriteCapacityUnits: 3. " +
				"Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.",
			local: same,
		},
		{
			name: "an update of a missing index", before: units(), request: updateIndexes(nil, changeIndex("hix", 2, 3)),
			code: validation, text: "The table does not have the specified index: hix", local: "Invalid global secondary index name",
		},
		{
			name: "a new index that exists", before: indexed(), request: updateIndexes(definitions("g"), addIndex("gix", "g")),
			code: validation, text: "Attempting to create an index which already exists",
		},
		{
			name: "a new index named like a local one", before: []any{byRequest(locals("lix"))},
			request: updateIndexes(definitions("l"), addIndex("lix", "l")),
			code:    validation, text: "Attempting to create an index which already exists",
		},
		{
			name: "a new index without definitions", before: plain(), request: updateIndexes(nil, addIndex("gix", "g")),
			code: validation, text: wrong + "Some index key attributes are not defined in AttributeDefinitions. Keys: [g], AttributeDefinitions: []",
			local: "No Attribute Schema Defined",
		},
		{
			name: "a new index whose key only the table defines", before: plain(), request: updateIndexes(definitions("g"), addIndex("gix", "g", "a")),
			code: validation, text: wrong + "Some index key attributes are not defined in AttributeDefinitions. Keys: [g, a], AttributeDefinitions: [g]",
			differs: "DynamoDB Local takes it; AWS does not: github.com/nubo-db/dynoxide/issues/144",
		},
		{
			name: "an attribute of another type", before: plain(),
			request: updateIndexes(append(definitions("g"), types.AttributeDefinition{
				AttributeName: aws.String("a"), AttributeType: types.ScalarAttributeTypeN,
			}), addIndex("gix", "g")),
			code: validation, text: "invalid attribute, SchemaElement redefined should be of same type as previously defined",
		},
		{
			name: "a new index without throughput in a provisioned table", before: units(),
			request: updateIndexes(definitions("h"), addIndex("hix", "h")),
			code:    validation, text: wrong + "ProvisionedThroughput must be specified for index: hix",
			differs: "DynamoDB Local fails with InternalFailure",
		},
		{
			name: "two new indexes", before: plain(), request: updateIndexes(definitions("g"), addIndex("gix", "g"), addIndex("hix", "g")),
			code: limit, text: oneAtATime,
		},
		{
			name: "a new index and a removed one", before: indexed(), request: updateIndexes(definitions("g"), addIndex("hix", "g"), removeIndex("gix")),
			code: limit, text: oneAtATime,
		},
		{
			name: "two things of one index", before: units(), request: updateIndexes(nil, changeIndex("gix", 9, 9), removeIndex("gix")),
			code: validation, text: wrong + onePerIndex + " Index: gix", local: onePerIndex,
		},
		{
			name: "an empty update", before: plain(), request: updateIndexes(nil, types.GlobalSecondaryIndexUpdate{}),
			code: validation,
			text: wrong + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, " +
				"GlobalSecondaryIndexUpdate.Delete must not be null",
			local: "Update global secondary index action is null",
		},
		{
			name: "the 21st index", before: []any{byRequest(globals(names("gix", 20)...))}, request: updateIndexes(definitions("g"), addIndex("hix", "g")),
			code: limit, text: "Number of global secondary indexes exceeds per-table limit",
		},
		{
			name: "removal of a missing index", before: indexed(), request: updateIndexes(nil, removeIndex("hix")),
			code: missing, text: "Requested resource not found",
		},
		{
			name: "removal of a local index", before: []any{byRequest(locals("lix"))}, request: updateIndexes(nil, removeIndex("lix")),
			code: validation, text: "Cannot delete an index that is not a GlobalSecondaryIndex",
		},
		{
			name: "a stream to disable where none is", before: plain(),
			request: &dynamodb.UpdateTableInput{StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)}},
			code:    validation, text: "Table has no stream to disable",
		},
		{
			name: "a limit of requests of a provisioned table", before: units(),
			request: &dynamodb.UpdateTableInput{OnDemandThroughput: &types.OnDemandThroughput{MaxReadRequestUnits: aws.Int64(1)}},
			code:    validation, text: wrong + "OnDemandThroughput cannot be specified when BillingMode is PROVISIONED",
			differs: notInLocal,
		},
		{
			name: "a key of one's own without encryption", before: plain(),
			request: &dynamodb.UpdateTableInput{SSESpecification: &types.SSESpecification{KMSMasterKeyId: aws.String("mine")}},
			code:    validation, text: wrong + "KMSMasterKeyId cannot be specified when Enabled is false",
			differs: notInLocal,
		},
	}
}

func TestUpdateTableRefusesByNameWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	for what, in := range map[string]*dynamodb.UpdateTableInput{
		"DisassociationProtectionEnabled":       {DisassociationProtectionEnabled: aws.Bool(true)},
		"GlobalTableSettingsReplicationMode":    {GlobalTableSettingsReplicationMode: types.GlobalTableSettingsReplicationModeEnabled},
		"GlobalTableWitnessUpdates":             {GlobalTableWitnessUpdates: make([]types.GlobalTableWitnessGroupUpdate, 1)},
		"MultiRegionConsistency":                {MultiRegionConsistency: types.MultiRegionConsistencyStrong},
		"ReplicaUpdates":                        {ReplicaUpdates: make([]types.ReplicationGroupUpdate, 1)},
		"StreamSpecification":                   {StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true)}},
		"VectorIndexUpdates":                    {VectorIndexUpdates: make([]types.VectorIndexUpdate, 1)},
		"WarmThroughput":                        {WarmThroughput: &types.WarmThroughput{}},
		"keys of several attributes: index gix": updateIndexes(definitions("g", "h", "i"), addIndex("gix", "g", "h", "i")),
	} {
		_, err := call(t.Context(), New(Config{}), "tab", in)
		assertAPIError(t, err, validation, "dynamotest does not support "+what)
	}
}
