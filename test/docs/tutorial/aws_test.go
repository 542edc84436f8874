//go:build unix

package tutorial

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/dynamolocal"
	"github.com/millrace-dev/millrace/journal/resolver"
)

var (
	restored = regexp.MustCompile(`--source-table-name (\S+) --target-table-name (\S+)`)
	updated  = regexp.MustCompile(`(?s)update-table --table-name (\S+).+?--global-secondary-index-updates '(.+?)'`)
	defined  = regexp.MustCompile(`AttributeName=(\S+),AttributeType=(\w)`)
)

// onAWS does in the database of the page what its commands would do on AWS: it restores tables, and
// adds indexes.
func (r *reader) onAWS(t *testing.T, s step) {
	t.Helper()
	client := dynamolocal.NewClient(r.place.database, "millrace")
	commands := 0
	for _, names := range restored.FindAllStringSubmatch(s.text, -1) {
		require.NoError(t, copyTable(t.Context(), client, names[1], names[2], func(string) bool { return true }))
		if names[1] == "shop-journal" { // for the page's reset, a few of the groups
			require.NoError(t, copyTable(t.Context(), client, "shop-checkpoint", "r-checkpoint", func(key string) bool {
				return strings.Contains(key, "labels/") || strings.Contains(key, "history/")
			}))
		}
		commands++
	}
	for _, found := range updated.FindAllStringSubmatch(s.text, -1) {
		update := dynamodb.UpdateTableInput{TableName: &found[1]}
		require.NoError(t, json.Unmarshal([]byte(found[2]), &update.GlobalSecondaryIndexUpdates))
		for _, attribute := range defined.FindAllStringSubmatch(s.text, -1) {
			update.AttributeDefinitions = append(update.AttributeDefinitions, attributeOf(attribute[1], attribute[2]))
		}
		_, err := client.UpdateTable(t.Context(), &update)
		require.NoError(t, err)
		commands++
	}
	require.Equal(t, strings.Count(s.text, "aws dynamodb "), commands, "the commands that the test knows")
}

func attributeOf(name, kind string) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeType(kind)}
}

// copyTable copies the items with some keys.
func copyTable(ctx context.Context, client *dynamodb.Client, from, to string, copied func(key string) bool) error {
	described, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &from})
	if err != nil {
		return err
	}
	of := described.Table
	create := &dynamodb.CreateTableInput{
		TableName: &to, BillingMode: types.BillingModePayPerRequest, AttributeDefinitions: of.AttributeDefinitions, KeySchema: of.KeySchema,
	}
	for _, index := range of.GlobalSecondaryIndexes {
		create.GlobalSecondaryIndexes = append(create.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: index.IndexName, KeySchema: index.KeySchema, Projection: index.Projection,
		})
	}
	if _, err := client.CreateTable(ctx, create); err != nil {
		return err
	}
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &from})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			key := ""
			for _, part := range of.KeySchema {
				if text, ok := item[*part.AttributeName].(*types.AttributeValueMemberS); ok {
					key += text.Value + " "
				}
			}
			if !copied(key) {
				continue
			}
			if _, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &to, Item: item}); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofAnotherProgram returns a database with the tables of a program over event-store-adapter-js: an
// account with seven events.
func ofAnotherProgram(t *testing.T) place {
	t.Helper()
	db := dynamotest.New(t)
	server := httptest.NewServer(db.Handler())
	t.Cleanup(server.Close)
	account := aggregate.ID{Type: "account", Value: "42"}
	put := func(table string, seq int, payload string, more map[string]types.AttributeValue) {
		row := map[string]types.AttributeValue{
			"pkey":    &types.AttributeValueMemberS{Value: fmt.Sprintf("account-%d", resolver.JSHash.Shard(account, 32))},
			"skey":    &types.AttributeValueMemberS{Value: fmt.Sprintf("%s-%d", account, seq)},
			"aid":     &types.AttributeValueMemberS{Value: account.String()},
			"seq_nr":  &types.AttributeValueMemberN{Value: fmt.Sprint(seq)},
			"payload": &types.AttributeValueMemberB{Value: []byte(payload)},
		}
		for name, value := range more {
			row[name] = value
		}
		_, err := db.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: row})
		require.NoError(t, err)
	}
	createPeerTable(t, db.Client(), "journal", "journal-aid-index")
	createPeerTable(t, db.Client(), "snapshot", "snapshots-aid-index")
	for seq := 1; seq <= 7; seq++ {
		put("journal", seq, fmt.Sprintf(`{"type":"AccountDeposited","data":{"typeName":"AccountDeposited","isCreated":false,`+
			`"id":"5b2d6f2e-6a77-4b8e-9c9e-3f1f1d3d2c%02d","aggregateId":{"typeName":"account","value":"42"},"sequenceNumber":%d,"amount":5}}`, seq, seq),
			map[string]types.AttributeValue{"occurred_at": &types.AttributeValueMemberN{Value: fmt.Sprint(time.Now().UnixMilli() % 1000)}})
	}
	put("snapshot", 0, `{"type":"Account","data":{"typeName":"Account","id":{"typeName":"account","value":"42"},"balance":35,"sequenceNumber":7,"version":7}}`,
		map[string]types.AttributeValue{
			"version": &types.AttributeValueMemberN{Value: "7"}, "ttl": &types.AttributeValueMemberN{Value: "0"},
			"last_updated_at": &types.AttributeValueMemberN{Value: fmt.Sprint(time.Now().UnixMilli())},
		})
	return place{database: server.URL}
}

// createPeerTable creates a table as event-store-adapter-js describes it.
func createPeerTable(t *testing.T, client *dynamodb.Client, table, index string) {
	t.Helper()
	throughput := &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(10), WriteCapacityUnits: aws.Int64(5)}
	keys := func(hash, sort string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash}, {AttributeName: &sort, KeyType: types.KeyTypeRange}}
	}
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &table, KeySchema: keys("pkey", "skey"), ProvisionedThroughput: throughput,
		AttributeDefinitions: []types.AttributeDefinition{
			attributeOf("pkey", "S"), attributeOf("skey", "S"), attributeOf("aid", "S"), attributeOf("seq_nr", "N"),
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: &index, KeySchema: keys("aid", "seq_nr"), ProvisionedThroughput: throughput,
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	})
	require.NoError(t, err)
}
