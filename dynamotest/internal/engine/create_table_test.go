package engine

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
)

const wrong = "One or more parameter values were invalid: "

func TestCreateTableRefuses(t *testing.T) {
	t.Parallel()
	refusedAsExpected(t, createTableRefusals())
}

func TestCreateTableRefusesWhatDynamoDBLocalRefuses(t *testing.T) {
	t.Parallel()
	refusedByDynamoDBLocal(t, createTableRefusals())
}

func createTableRefusals() []refusal {
	with := func(change func(*dynamodb.CreateTableInput)) *dynamodb.CreateTableInput { return byRequest(change) }
	return []refusal{
		{
			name: "a table that exists", before: []any{byRequest()}, request: byRequest(),
			code: "ResourceInUseException", text: "Table already exists: tab", local: "Cannot create preexisting table",
		},
		{
			name:    "a name too short",
			request: with(func(in *dynamodb.CreateTableInput) { in.TableName = aws.String("ab") }),
			code:    validation, text: "TableName must be at least 3 characters long and at most 255 characters long",
			local: "Invalid table/index name.  Table/index names must be between 3 and 255 characters long, " +
				"and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'",
		},
		{
			name:    "a key attribute without definition",
			request: with(func(in *dynamodb.CreateTableInput) { in.AttributeDefinitions = definitions("z") }),
			code:    validation, text: wrong + "Some index key attributes are not defined in AttributeDefinitions. Keys: [a], AttributeDefinitions: [z]",
			local: "Hash Key not specified in Attribute Definitions.  Type unknown.",
		},
		{
			name:    "more keys than definitions",
			request: with(func(in *dynamodb.CreateTableInput) { in.KeySchema = keyOfNames("a", "b") }),
			code:    validation, text: "Invalid KeySchema: Some index key attribute have no definition",
			local: "Range Key not specified in Attribute Definitions.  Type unknown.",
		},
		{
			name:    "more definitions than keys",
			request: with(func(in *dynamodb.CreateTableInput) { in.AttributeDefinitions = definitions("a", "b") }),
			code:    validation, text: wrong + "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions",
			local: "The number of attributes in key schema must match the number of attributes defined in attribute definitions.",
		},
		{
			name: "a definition that no index uses",
			request: byRequest(globals("gix"), func(in *dynamodb.CreateTableInput) {
				in.AttributeDefinitions = append(in.AttributeDefinitions, definitions("z")...)
			}),
			code: validation, text: wrong + "Some AttributeDefinitions are not used. AttributeDefinitions: [a, g, z], keys used: [a, g]",
			local: "The number of attributes in key schema must match the number of attributes defined in attribute definitions.",
		},
		{
			name: "an attribute defined twice",
			request: byRequest(globals("gix"), func(in *dynamodb.CreateTableInput) {
				in.AttributeDefinitions = append(in.AttributeDefinitions, definitions("g")...)
			}),
			code: validation, text: "Cannot have two attributes with the same name",
		},
		{
			name:    "a range key first",
			request: with(func(in *dynamodb.CreateTableInput) { in.KeySchema[0].KeyType = types.KeyTypeRange }),
			code:    validation, text: "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
			local: "No Hash Key specified in schema.  All Dynamo DB tables must have exactly one hash key",
		},
		{
			name: "two hash keys",
			request: with(func(in *dynamodb.CreateTableInput) {
				in.AttributeDefinitions, in.KeySchema = definitions("a", "b"), keyOfNames("a", "b")
				in.KeySchema[1].KeyType = types.KeyTypeHash
			}),
			code: validation, text: "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
			local: "Too many hash keys specified.  All Dynamo DB tables must have exactly one hash key",
		},
		{
			name: "one attribute as both keys",
			request: with(func(in *dynamodb.CreateTableInput) {
				in.AttributeDefinitions, in.KeySchema = definitions("a", "b"), keyOfNames("a", "a")
			}),
			code: validation, text: "Both the Hash Key and the Range Key element in the KeySchema have the same name",
			local: "Two keys can not have the same name",
		},
		{
			name: "three keys",
			request: with(func(in *dynamodb.CreateTableInput) {
				in.AttributeDefinitions, in.KeySchema = definitions("a", "b", "c"), keyOfNames("a", "b", "c")
			}),
			code: validation,
			text: "1 validation error detected: Value '[KeySchemaElement(attributeName=a, keyType=HASH), " +
				"KeySchemaElement(attributeName=b, keyType=RANGE), KeySchemaElement(attributeName=c, keyType=RANGE)]' " +
				"at 'keySchema' failed to satisfy constraint: Member must have length less than or equal to 2",
			local: "Key Schema too big.  Key Schema must at most consist of the hash and range key of a table",
		},
		{
			name:    "no key",
			request: with(func(in *dynamodb.CreateTableInput) { in.KeySchema = []types.KeySchemaElement{} }),
			code:    validation,
			text: "1 validation error detected: Value '[]' at 'keySchema' failed to satisfy constraint: " +
				"Member must have length greater than or equal to 1",
			local: "No Hash Key specified in schema.  All Dynamo DB tables must have exactly one hash key",
		},
		{
			name: "neither definitions nor keys", request: &dynamodb.CreateTableInput{}, code: validation,
			text: "2 validation errors detected: Value null at 'attributeDefinitions' failed to satisfy constraint: Member must not be null; " +
				"Value null at 'keySchema' failed to satisfy constraint: Member must not be null",
			differs: refusedBySDK,
		},
		{
			name:    "a key of a type that no key has",
			request: with(func(in *dynamodb.CreateTableInput) { in.AttributeDefinitions[0].AttributeType = "SS" }),
			code:    validation,
			text: "1 validation error detected: Value 'SS' at 'attributeDefinitions.1.member.attributeType' failed to satisfy constraint: " +
				"Member must satisfy enum value set: [B, N, S]",
			local: "Member must satisfy enum value set: [B, N, S]",
		},
		{
			name: "no name of a key attribute",
			request: with(func(in *dynamodb.CreateTableInput) {
				in.AttributeDefinitions, in.KeySchema = definitions(""), keyOfNames("")
			}),
			code: validation,
			text: "2 validation errors detected: Value '' at 'attributeDefinitions.1.member.attributeName' failed to satisfy constraint: " +
				"Member must have length greater than or equal to 1; Value '' at 'keySchema.1.member.attributeName' failed to satisfy constraint: " +
				"Member must have length greater than or equal to 1",
			local: "Names of key attributes and attributes projected into an index must be between 1 and 255 characters, inclusive",
		},
		{
			name:    "no throughput of a provisioned table",
			request: with(func(in *dynamodb.CreateTableInput) { in.BillingMode = "" }),
			code:    validation, text: wrong + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
			local: "No provisioned throughput specified for the table",
		},
		{
			name:    "throughput of a table billed by request",
			request: with(func(in *dynamodb.CreateTableInput) { in.ProvisionedThroughput = capacity(1, 1) }),
			code:    validation, text: wrong + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST",
			differs: takenByLocal,
		},
		{
			name: "no units",
			request: with(func(in *dynamodb.CreateTableInput) {
				in.BillingMode, in.ProvisionedThroughput = "", capacity(0, 1)
			}),
			code: validation,
			text: "1 validation error detected: Value '0' at 'provisionedThroughput.readCapacityUnits' failed to satisfy constraint: " +
				"Member must have value greater than or equal to 1",
			local: "Table read and write throughput must be at least 1, and cannot be null",
		},
		{
			name: "units beyond all bounds",
			request: with(func(in *dynamodb.CreateTableInput) {
				in.BillingMode, in.ProvisionedThroughput = "", capacity(1_000_000_000_001, 1)
			}),
			code: validation, text: "Given value 1000000000001 for ReadCapacityUnits is out of bounds",
			local: "Cannot increase provisioned throughput to more than 40,000 units per table",
		},
		{
			name:    "an unknown billing mode",
			request: with(func(in *dynamodb.CreateTableInput) { in.BillingMode = "FREE" }),
			code:    validation,
			text: "1 validation error detected: Value 'FREE' at 'billingMode' failed to satisfy constraint: " +
				"Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]",
			differs: "DynamoDB Local fails with InternalFailure; dynalite's tests, which run against AWS, tell the error",
		},
		{
			name: "a view of a stream that is off",
			request: with(func(in *dynamodb.CreateTableInput) {
				in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(false), StreamViewType: types.StreamViewTypeNewImage}
			}),
			code: validation, text: wrong + "StreamViewType is specified, but StreamEnabled is false",
			local: "Invalid StreamViewType: Stream StreamEnabled was false but a StreamViewType was present.",
		},
	}
}

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

func TestCreateTableRefusesByNameWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*dynamodb.CreateTableInput){
		"GlobalTableSettingsReplicationMode": func(in *dynamodb.CreateTableInput) {
			in.GlobalTableSettingsReplicationMode = types.GlobalTableSettingsReplicationModeEnabled
		},
		"GlobalTableSourceArn": func(in *dynamodb.CreateTableInput) { in.GlobalTableSourceArn = aws.String("arn") },
		"ResourcePolicy":       func(in *dynamodb.CreateTableInput) { in.ResourcePolicy = aws.String("{}") },
		"StreamSpecification": func(in *dynamodb.CreateTableInput) {
			in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage}
		},
		"Tags": func(in *dynamodb.CreateTableInput) {
			in.Tags = []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}
		},
		"VectorIndexes":  func(in *dynamodb.CreateTableInput) { in.VectorIndexes = make([]types.VectorIndex, 1) },
		"WarmThroughput": func(in *dynamodb.CreateTableInput) { in.WarmThroughput = &types.WarmThroughput{} },
	} {
		_, err := call(t.Context(), New(Config{}), "tab", byRequest(change))
		assertAPIError(t, err, validation, "dynamotest does not support "+what)
	}
}

func TestCreateTableAcceptsWhatDynamoDBLocalAccepts(t *testing.T) {
	t.Parallel()
	client, db := dynamolocaltest.Client(t), New(Config{})
	for name, request := range map[string]*dynamodb.CreateTableInput{
		"20.global.indexes":       byRequest(globals(names("gix", 20)...)),
		"5.local.indexes":         byRequest(locals(names("lix", 5)...)),
		"both.kinds":              byRequest(locals("lix"), globals("gix")),
		"provisioned":             provisioned(globals("gix")),
		"an.index.on.its.own.key": byRequest(globals("gix"), func(in *dynamodb.CreateTableInput) { in.GlobalSecondaryIndexes[0].KeySchema = keyOfNames("g", "a") }),
		"projected.keys": global(func(ix *types.GlobalSecondaryIndex) {
			ix.Projection = &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"a", "g"}}
		}),
		"100.projected.attributes": global(func(ix *types.GlobalSecondaryIndex) {
			ix.Projection = &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: names("x", 100)}
		}),
		"a.stream.that.is.off": byRequest(func(in *dynamodb.CreateTableInput) {
			in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(false)}
		}),
	} {
		_, err := call(t.Context(), client, name, request)
		require.NoError(t, err, "DynamoDB Local: %s", name)
		_, err = call(t.Context(), db, name, request)
		require.NoError(t, err, name)
	}
}

func TestCreateTableKeepsNothingOfTheRequest(t *testing.T) {
	t.Parallel()
	db := New(Config{})
	in := provisioned(globals("gix"))
	before := describe(t, db, in)

	*in.AttributeDefinitions[0].AttributeName = "changed"
	*in.KeySchema[0].AttributeName = "changed"
	*in.ProvisionedThroughput.ReadCapacityUnits = 99
	*in.GlobalSecondaryIndexes[0].IndexName = "changed"
	after, err := db.DescribeTable(&dynamodb.DescribeTableInput{TableName: aws.String("tab")})
	require.NoError(t, err)
	assert.Equal(t, before, after.Table)
}

// describe creates a table and describes it.
func describe(t *testing.T, db *Database, in *dynamodb.CreateTableInput) *types.TableDescription {
	t.Helper()
	_, err := call(t.Context(), db, "tab", in)
	require.NoError(t, err)
	out, err := db.DescribeTable(&dynamodb.DescribeTableInput{TableName: aws.String("tab")})
	require.NoError(t, err)
	return out.Table
}

func BenchmarkCreateTable(b *testing.B) {
	in := byRequest(globals("gix", "hix"))
	in.TableName = aws.String("tab")
	for b.Loop() {
		db := New(Config{})
		if _, err := db.CreateTable(in); err != nil {
			b.Fatal(err)
		}
	}
}
