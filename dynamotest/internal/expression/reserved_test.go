package expression

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
)

// free are names that are similar to reserved words, or are reserved in other languages.
var free = strings.Fields(`id pk sk attr attributes version payload kind state_ states names_ name_ key_ keyz
	a aa AbortX counters datas days description events email etag event expires expiry created createdAt updated
	updatedAt updated_at gsi1pk gsi1sk hashed indexing integers journal jsonb latest locale locations logged
	lockedUntil mapped maximum minimum nested nulls owner_id owners owned parent payloads percents phone pointer
	positions price priority processing project_id projections queue queued ranged reader readers recorder
	region_id regions requested responses retry roles_ sequences sequencenumber shards sizes snapshots sourced
	statuses streamid streams subject tables tag tags tenant tenantid texts thing title topics totals types
	typed users_ username valid validity visible votes weight worker works writes years zones begins_with
	attribute_exists list_append if_not_exists flatten inner_ logs begins`)

func TestReservedWordsAreKnownInAnyCase(t *testing.T) {
	t.Parallel()
	require.Len(t, reserved, 573)
	for word := range reserved {
		assert.True(t, isReserved(word), word)
		assert.True(t, isReserved(strings.ToLower(word)), word)
		assert.True(t, isReserved(word[:1]+strings.ToLower(word[1:])), word)
		assert.LessOrEqual(t, len(word), longestReserved)
	}
	for _, word := range free {
		assert.False(t, isReserved(word), word)
	}
	assert.False(t, isReserved(""))
}

func TestReservedWordsOnDynamoDBLocal(t *testing.T) {
	t.Parallel()
	client := dynamolocaltest.Client(t)
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String("items"),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
	project := func(word string) error {
		_, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
			TableName:            aws.String("items"),
			Key:                  map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "k"}},
			ProjectionExpression: aws.String(word),
		})
		return err
	}
	for word := range reserved {
		err := project(word)
		switch {
		// The guide lists them, but DynamoDB Local accepts them.
		case word == "CONVERT", word == "SIZE":
			assert.NoError(t, err)
		case scan(word, 0).kind != tokenName:
			assert.ErrorContains(t, err, "Syntax error", word)
		default:
			assert.ErrorContains(t, err, "reserved keyword: "+word, word)
		}
	}
	for _, word := range free {
		assert.NoError(t, project(word), word)
	}
}
