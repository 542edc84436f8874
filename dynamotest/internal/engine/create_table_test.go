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
			name:    "a stream neither on nor off",
			request: with(func(in *dynamodb.CreateTableInput) { in.StreamSpecification = &types.StreamSpecification{} }),
			code:    validation,
			text: "1 validation error detected: Value null at 'streamSpecification.streamEnabled' failed to satisfy constraint: " +
				"Member must not be null",
			differs: refusedBySDK,
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
