package expression_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
)

// local evaluates with DynamoDB Local, which has a table with the fixture.
type local struct {
	t      *testing.T
	client *dynamodb.Client
}

func newLocal(t *testing.T) local {
	t.Helper()
	l := local{t: t, client: dynamolocaltest.Client(t)}
	l.create("items", "")
	l.put("items", fixture)
	return l
}

func (l local) create(name string, sortType types.ScalarAttributeType) {
	l.t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName:            aws.String(name),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	}
	if sortType != "" {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String("sk"), AttributeType: sortType})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange})
	}
	_, err := l.client.CreateTable(l.t.Context(), in)
	require.NoError(l.t, err)
}

func (l local) put(table string, item value.Item) {
	l.t.Helper()
	_, err := l.client.PutItem(l.t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: item})
	require.NoError(l.t, err)
}

func (l local) condition(source string) string {
	names, values := placeholders(source)
	_, err := l.client.PutItem(l.t.Context(), &dynamodb.PutItemInput{
		TableName:                 aws.String("items"),
		Item:                      fixture,
		ConditionExpression:       aws.String(source),
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: values,
	})
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return "true"
	case errors.As(err, &failed):
		return "false"
	default:
		return message(err)
	}
}

func (l local) update(source string) string {
	l.put("items", fixture)
	names, values := placeholders(source)
	out, err := l.client.UpdateItem(l.t.Context(), &dynamodb.UpdateItemInput{
		TableName:                 aws.String("items"),
		Key:                       value.Item{"pk": fixture["pk"]},
		UpdateExpression:          aws.String(source),
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: values,
		ReturnValues:              types.ReturnValueAllNew,
	})
	if err != nil {
		return message(err)
	}
	return showChanges(out.Attributes)
}

func (l local) projection(source string) string {
	names, _ := placeholders(source)
	out, err := l.client.GetItem(l.t.Context(), &dynamodb.GetItemInput{
		TableName:                aws.String("items"),
		Key:                      value.Item{"pk": fixture["pk"]},
		ProjectionExpression:     aws.String(source),
		ExpressionAttributeNames: names,
	})
	if err != nil {
		return message(err)
	}
	return showItem(out.Item)
}

// keyCondition creates a table for key conditions and returns its evaluator.
func (l local) keyCondition(sortType types.ScalarAttributeType) evaluator {
	l.t.Helper()
	table := "keys" + string(sortType)
	l.create(table, sortType)
	for _, v := range sortKeys[sortType] {
		l.put(table, value.Item{"pk": s("k"), "sk": v})
	}
	return func(source string) string {
		names, values := placeholders(source)
		out, err := l.client.Query(l.t.Context(), &dynamodb.QueryInput{
			TableName:                 aws.String(table),
			KeyConditionExpression:    aws.String(source),
			ExpressionAttributeNames:  names,
			ExpressionAttributeValues: values,
		})
		if err != nil {
			return message(err)
		}
		var found []string
		for _, item := range out.Items {
			found = append(found, show(item["sk"]))
		}
		return strings.Join(found, " ")
	}
}
