package awsproof

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/tables"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

var one = &types.AttributeValueMemberN{Value: "1"}

// key returns the key of an item in the tables of [proof.table].
func key(partition, sort string) item { return item{"pk": text(partition), "sk": text(sort)} }

// filled returns the key and a text that makes the item about n bytes large.
func filled(partition, sort string, n int) item {
	it := key(partition, sort)
	it["shown"] = text(strings.Repeat("x", n))
	return it
}

// byGroup is the index of the tables of [proof.table]. Its entries have the attribute shown.
const byGroup = "by-group"

// table creates a table for single requests, with an index, and returns its name.
func (p *proof) table(ctx context.Context, name string) (string, error) {
	name = p.prefix + "-" + name
	attribute := func(name string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}
	}
	keys := func(hash string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash}, {AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange}}
	}
	return name, tables.Ensure(ctx, p.Client, &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: keys("pk"),
		AttributeDefinitions: []types.AttributeDefinition{attribute("pk"), attribute("sk"), attribute("grp")},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String(byGroup), KeySchema: keys("grp"),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"shown"}},
		}},
	})
}

// once returns the client without retries, so that each error is seen.
func (p *proof) once() *dynamodb.Client {
	return dynamodb.New(p.Client.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
}
