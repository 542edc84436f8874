package dynamolocaltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
)

// opened holds the keys of each endpoint, so that a test process creates their list once.
var opened sync.Map // endpoint -> func() (*keys, error)

func keysOf(endpoint string) (*keys, error) {
	once, _ := opened.LoadOrStore(endpoint, sync.OnceValues(func() (*keys, error) {
		return openKeys(context.Background(), endpoint)
	}))
	return once.(func() (*keys, error))()
}

// keys lends the access keys of one emulator, and so its databases. The emulator keeps about six
// threads for each key that it has ever seen, so a returned key is lent again. The list of free
// keys is a table of the emulator. So test processes that share the emulator share its keys, and
// the list ends with the emulator. A key that was not returned, for example because a process
// crashed, is not lent again.
type keys struct{ list *dynamodb.Client }

const (
	// keyPrefix is the start of each lent access key. The list is in a separate database.
	keyPrefix = "test"
	listKey   = "testkeys"
	listTable = "keys"
	// counter is the id of the item that counts the keys. The other items are the free keys.
	counter = "count"
)

// openKeys creates the list unless another process has created it.
func openKeys(ctx context.Context, endpoint string) (*keys, error) {
	list := dynamolocal.NewClient(endpoint, listKey)
	_, err := list.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String(listTable),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err != nil && !isA[*types.ResourceInUseException](err) {
		return nil, fmt.Errorf("create the list of access keys: %w", err)
	}
	return &keys{list}, nil
}

// take returns a key whose database is empty and that no other test uses.
func (k *keys) take(ctx context.Context) (string, error) {
	out, err := k.list.Scan(ctx, &dynamodb.ScanInput{
		TableName: aws.String(listTable), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return "", fmt.Errorf("find a free access key: %w", err)
	}
	for _, item := range out.Items {
		id := item["id"].(*types.AttributeValueMemberS).Value
		if id == counter {
			continue
		}
		_, err := k.list.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: aws.String(listTable), Key: keyItem(id), ConditionExpression: aws.String("attribute_exists(id)"),
		})
		if isA[*types.ConditionalCheckFailedException](err) {
			continue // another test was faster
		}
		if err != nil {
			return "", fmt.Errorf("take access key %s: %w", id, err)
		}
		return keyPrefix + id, nil
	}
	return k.add(ctx)
}

// add returns a key that the emulator has not seen. The list contains it after it is returned.
func (k *keys) add(ctx context.Context) (string, error) {
	out, err := k.list.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(listTable), Key: keyItem(counter), ReturnValues: types.ReturnValueUpdatedNew,
		UpdateExpression:          aws.String("ADD lent :one"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
	})
	if err != nil {
		return "", fmt.Errorf("count a new access key: %w", err)
	}
	return keyPrefix + out.Attributes["lent"].(*types.AttributeValueMemberN).Value, nil
}

// release deletes the tables in the database of key and returns the key.
func (k *keys) release(ctx context.Context, database *dynamodb.Client, key string) error {
	for {
		out, err := database.ListTables(ctx, &dynamodb.ListTablesInput{})
		if err != nil {
			return fmt.Errorf("list the tables of access key %s: %w", key, err)
		}
		if len(out.TableNames) == 0 {
			break
		}
		for _, name := range out.TableNames {
			_, err := database.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
			if err != nil && !isA[*types.ResourceNotFoundException](err) {
				return fmt.Errorf("delete table %s of access key %s: %w", name, key, err)
			}
		}
	}
	_, err := k.list.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(listTable), Item: keyItem(strings.TrimPrefix(key, keyPrefix)),
	})
	if err != nil {
		return fmt.Errorf("return access key %s: %w", key, err)
	}
	return nil
}

func keyItem(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
}

func isA[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}
