package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/journal"
)

// createFamily creates the tables of a store of the event-store-adapter family.
func createFamily(ctx context.Context, client *dynamodb.Client, prefix string, tail bool) error {
	if tail {
		_, err := openJournal(ctx, database{client: client}, prefix, journal.Classic)
		return err
	}
	for table, index := range map[string]string{"-journal": "journal-aid-index", "-snapshot": "snapshot-aid-index"} {
		if err := create(ctx, client, prefix+table, attribute{"pkey", "S"}, attribute{"skey", "S"}, types.GlobalSecondaryIndex{
			IndexName: &index, KeySchema: keys("aid", "seq_nr"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}, attribute{"aid", "S"}, attribute{"seq_nr", "N"}); err != nil {
			return err
		}
	}
	return nil
}

// createCastore creates the table of castore's adapter. Its index contains the first event of each
// aggregate.
func createCastore(ctx context.Context, client *dynamodb.Client, prefix string) error {
	return create(ctx, client, prefix+"-events", attribute{"aggregateId", "S"}, attribute{"version", "N"}, types.GlobalSecondaryIndex{
		IndexName: aws.String("initialEvents"), KeySchema: keys("eventStoreId", "timestamp"),
		Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
	}, attribute{"eventStoreId", "S"}, attribute{"timestamp", "S"})
}

type attribute struct {
	name string
	kind types.ScalarAttributeType
}

// create creates a table with one index. The others are the attributes of the index.
func create(ctx context.Context, client *dynamodb.Client, table string, hash, sort attribute, index types.GlobalSecondaryIndex, others ...attribute) error {
	in := &dynamodb.CreateTableInput{
		TableName: &table, KeySchema: keys(hash.name, sort.name), BillingMode: types.BillingModePayPerRequest,
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{index},
	}
	for _, a := range append(others, hash, sort) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &a.name, AttributeType: a.kind})
	}
	_, err := client.CreateTable(ctx, in)
	return err
}

func keys(hash, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: &hash, KeyType: types.KeyTypeHash}, {AttributeName: &sort, KeyType: types.KeyTypeRange},
	}
}
