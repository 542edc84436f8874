package engine

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestCreateTableRefusesIndexes(t *testing.T) {
	t.Parallel()
	refusedAsExpected(t, indexRefusals())
}

func TestCreateTableRefusesIndexesThatDynamoDBLocalRefuses(t *testing.T) {
	t.Parallel()
	refusedByDynamoDBLocal(t, indexRefusals())
}

func indexRefusals() []refusal {
	project := func(p types.Projection) *dynamodb.CreateTableInput {
		return global(func(ix *types.GlobalSecondaryIndex) { ix.Projection = &p })
	}
	include := func(names ...string) *dynamodb.CreateTableInput {
		return project(types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: names})
	}
	at := func(value, path string) string {
		return "1 validation error detected: Value " + value + " at 'globalSecondaryIndexes.1.member." + path +
			"' failed to satisfy constraint: Member must "
	}
	return []refusal{
		{
			name:    "an empty list of global indexes",
			request: byRequest(func(in *dynamodb.CreateTableInput) { in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{} }),
			code:    validation, text: wrong + "List of GlobalSecondaryIndexes is empty", local: "GSI list is empty/invalid",
		},
		{
			name:    "an empty list of local indexes",
			request: byRequest(func(in *dynamodb.CreateTableInput) { in.LocalSecondaryIndexes = []types.LocalSecondaryIndex{} }),
			code:    validation, text: wrong + "List of LocalSecondaryIndexes is empty", differs: takenByLocal,
		},
		{
			name:    "a key without definition",
			request: global(func(ix *types.GlobalSecondaryIndex) { ix.KeySchema = keyOfNames("g", "z") }),
			code:    validation, text: wrong + "Some index key attributes are not defined in AttributeDefinitions. Keys: [g, z], AttributeDefinitions: [a, g]",
			local: "Global Secondary Index range key not specified in Attribute Definitions.Type unknown.",
		},
		{
			name:    "a name too short",
			request: global(func(ix *types.GlobalSecondaryIndex) { ix.IndexName = aws.String("ix") }),
			code:    validation, text: at("'ix'", "indexName") + "have length greater than or equal to 3",
			local: "Invalid table/index name.  Table/index names must be between 3 and 255 characters long, " +
				"and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'",
		},
		{
			name:    "a name with other characters",
			request: global(func(ix *types.GlobalSecondaryIndex) { ix.IndexName = aws.String("i x") }),
			code:    validation, text: at("'i x'", "indexName") + "satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
			local: "Invalid table/index name.  Table/index names must be between 3 and 255 characters long, " +
				"and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'",
		},
		{
			name:    "a name taken by a global index",
			request: byRequest(globals("gix", "gix")),
			code:    validation, text: wrong + "Duplicate index name: gix", local: "Two global secondary indices have the same name",
		},
		{
			name:    "a name taken by a local index",
			request: byRequest(locals("gix"), globals("gix")),
			code:    validation, text: wrong + "Duplicate index name: gix",
			local: "Local Secondary Indices AND Global Secondary Indices must have different names",
		},
		{
			name: "no projection", request: global(func(ix *types.GlobalSecondaryIndex) { ix.Projection = nil }),
			code: validation, text: at("null", "projection") + "not be null", differs: refusedBySDK,
		},
		{
			name: "no type of projection", request: project(types.Projection{}),
			code: validation, text: wrong + "Unknown ProjectionType: null", local: "Indexes must have a projection specified",
		},
		{
			name: "an unknown type of projection", request: project(types.Projection{ProjectionType: "SOME"}),
			code: validation, text: at("'SOME'", "projection.projectionType") + "satisfy enum value set: [ALL, INCLUDE, KEYS_ONLY]",
			local: "Projection type must be INCLUDE, ALL, or KEYS_ONLY",
		},
		{
			name:    "attributes beside ALL",
			request: project(types.Projection{ProjectionType: types.ProjectionTypeAll, NonKeyAttributes: []string{"x"}}),
			code:    validation, text: wrong + "ProjectionType is ALL, but NonKeyAttributes is specified",
			local: "No attributes should be specified to be projected unless projection type is INCLUDE",
		},
		{
			name: "INCLUDE without attributes", request: include(),
			code: validation, text: wrong + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
			local: "If Projection type INCLUDE is specified, some non-key attributes to include in the projection must be specified as well",
		},
		{
			name: "INCLUDE with an empty list", request: include([]string{}...),
			code: validation, text: at("'[]'", "projection.nonKeyAttributes") + "have length greater than or equal to 1",
			local: "If Projection type INCLUDE is specified, some non-key attributes to include in the projection must be specified as well",
		},
		{
			name: "INCLUDE of an attribute without name", request: include(""),
			code: validation, text: at("''", "projection.nonKeyAttributes.1.member") + "have length greater than or equal to 1",
			local: "Names of key attributes and attributes projected into an index must be between 1 and 255 characters, inclusive",
		},
		{
			name: "INCLUDE of an attribute twice", request: include("x", "x"),
			code: validation, text: "Cannot have two attributes with the same name",
		},
		{
			name: "INCLUDE of more than 100 attributes over all indexes",
			request: byRequest(globals("gix", "hix"), func(in *dynamodb.CreateTableInput) {
				for i := range in.GlobalSecondaryIndexes {
					in.GlobalSecondaryIndexes[i].Projection = &types.Projection{
						ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: names("x", 51),
					}
				}
			}),
			code: validation, text: wrong + "Number of NonKeyAttributes of all indexes exceeds the per-table limit of 100",
			local: "No more than 20 attributes per table can be projected into Local Secondary Indices",
		},
		{
			name: "more than 20 global indexes", request: byRequest(globals(names("gix", 21)...)),
			code: validation, text: wrong + "GlobalSecondaryIndex count exceeds the per-table limit of 20",
			local: "GlobalSecondaryIndex count exceeds the per-table limit",
		},
		{
			name: "more than 5 local indexes", request: byRequest(locals(names("lix", 6)...)),
			code: validation, text: wrong + "Number of LocalSecondaryIndexes exceeds per-table limit of 5",
			local: "Cannot have more than 5 local secondary indexes per table",
		},
		{
			name: "a local index of a table without range key",
			request: byRequest(locals("lix"), func(in *dynamodb.CreateTableInput) {
				in.AttributeDefinitions, in.KeySchema = definitions("a", "l"), keyOfNames("a")
			}),
			code: validation, text: wrong + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex",
			local: "Local Secondary indices are not allowed on hash tables, only hash and range tables",
		},
		{
			name: "a local index without range key",
			request: byRequest(locals("lix"), func(in *dynamodb.CreateTableInput) {
				in.AttributeDefinitions, in.LocalSecondaryIndexes[0].KeySchema = definitions("a", "b"), keyOfNames("a")
			}),
			code: validation, text: wrong + "Index KeySchema does not have a range key for index: lix",
			local: "Local secondary indices must have a range key",
		},
		{
			name: "a local index with another hash key",
			request: byRequest(locals("lix"), func(in *dynamodb.CreateTableInput) {
				in.LocalSecondaryIndexes[0].KeySchema = keyOfNames("b", "l")
			}),
			code: validation,
			text: wrong + "Index KeySchema does not have the same leading hash key as table KeySchema for index: lix. " +
				"index hash key: b, table hash key: a",
			local: "Local Secondary indices must have the same hash key as the main table",
		},
		{
			name:    "throughput of an index billed by request",
			request: global(func(ix *types.GlobalSecondaryIndex) { ix.ProvisionedThroughput = capacity(1, 1) }),
			code:    validation, text: wrong + "ProvisionedThroughput should not be specified for index: gix when BillingMode is PAY_PER_REQUEST",
			differs: takenByLocal,
		},
		{
			name: "no throughput of a provisioned index",
			request: byRequest(globals("gix"), func(in *dynamodb.CreateTableInput) {
				in.BillingMode, in.ProvisionedThroughput = types.BillingModeProvisioned, capacity(1, 1)
			}),
			code: validation, text: wrong + "ProvisionedThroughput must be specified for index: gix",
			local: "No provisioned throughput specified for the global secondary index",
		},
		{
			name:    "a key of several attributes",
			request: global(func(ix *types.GlobalSecondaryIndex) { ix.KeySchema = keyOfNames("g", "a", "h") }),
			code:    validation, text: "dynamotest does not support keys of several attributes: index gix", differs: ours,
		},
	}
}
