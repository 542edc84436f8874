package stored

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// table is a table in a fixture.
type table struct {
	Schema schema
	Items  []json.RawMessage // DynamoDB JSON, sorted
}

// schema is what a table was created with.
type schema struct {
	Attributes []types.AttributeDefinition
	Keys       []types.KeySchemaElement
	Indexes    []index
	TimeToLive string `json:",omitempty"` // attribute
}

type index struct {
	Name       string
	Keys       []types.KeySchemaElement
	Projection types.Projection
}

// dumpTables writes each table to a file.
func dumpTables(t *testing.T, client *dynamodb.Client, folder string) {
	t.Helper()
	listed, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	require.NoError(t, err)
	require.Empty(t, listed.LastEvaluatedTableName)
	for _, name := range listed.TableNames {
		write(t, filepath.Join(folder, name+".json"), encodeTable(t, table{schemaOf(t, client, name), itemsOf(t, client, name)}))
	}
}

// encodeTable returns a table as JSON, with a line for each item.
func encodeTable(t *testing.T, table table) []byte {
	t.Helper()
	var out bytes.Buffer
	s, err := json.Marshal(table.Schema)
	require.NoError(t, err)
	fmt.Fprintf(&out, "{\"Schema\":%s,\"Items\":[", s)
	for i, item := range table.Items {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
		out.Write(item)
	}
	out.WriteString("\n]}\n")
	return out.Bytes()
}

func schemaOf(t *testing.T, client *dynamodb.Client, name string) schema {
	t.Helper()
	described, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
	require.NoError(t, err)
	s := schema{Attributes: described.Table.AttributeDefinitions, Keys: described.Table.KeySchema}
	for _, i := range described.Table.GlobalSecondaryIndexes {
		s.Indexes = append(s.Indexes, index{*i.IndexName, i.KeySchema, *i.Projection})
	}
	slices.SortFunc(s.Attributes, func(a, b types.AttributeDefinition) int { return cmp.Compare(*a.AttributeName, *b.AttributeName) })
	slices.SortFunc(s.Indexes, func(a, b index) int { return cmp.Compare(a.Name, b.Name) })
	ttl, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	require.NoError(t, err)
	if ttl.TimeToLiveDescription.TimeToLiveStatus == types.TimeToLiveStatusEnabled {
		s.TimeToLive = *ttl.TimeToLiveDescription.AttributeName
	}
	return s
}

func itemsOf(t *testing.T, client *dynamodb.Client, name string) (items []json.RawMessage) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &name, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		for _, item := range page.Items {
			encoded, err := json.Marshal(encodeItem(item))
			require.NoError(t, err)
			items = append(items, encoded)
		}
	}
	slices.SortFunc(items, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	return items
}

// loadTables creates the tables of a fixture and fills them.
func loadTables(t *testing.T, client *dynamodb.Client, folder string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, file := range files {
		path := strings.TrimSuffix(file.Name(), ".gz")
		if name, isTable := strings.CutSuffix(path, ".json"); isTable && path != expectedFile {
			var table table
			require.NoError(t, json.Unmarshal(read(t, filepath.Join(folder, path)), &table), name)
			createTable(t, client, name, table.Schema)
			for _, encoded := range table.Items {
				putItem(t, client, name, encoded)
			}
		}
	}
}

func createTable(t *testing.T, client *dynamodb.Client, name string, s schema) {
	t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: &name, AttributeDefinitions: s.Attributes, KeySchema: s.Keys, BillingMode: types.BillingModePayPerRequest,
	}
	for _, i := range s.Indexes {
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: &i.Name, KeySchema: i.Keys, Projection: &i.Projection,
		})
	}
	_, err := client.CreateTable(t.Context(), in)
	require.NoError(t, err, name)
	if s.TimeToLive == "" {
		return
	}
	_, err = client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               &name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &s.TimeToLive, Enabled: aws.Bool(true)},
	})
	require.NoError(t, err, name)
}

func putItem(t *testing.T, client *dynamodb.Client, name string, encoded json.RawMessage) {
	t.Helper()
	var item map[string]value
	require.NoError(t, json.Unmarshal(encoded, &item), "%s: %s", name, encoded)
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: decodeItem(t, item)})
	require.NoError(t, err, "%s: %s", name, encoded)
}

// value is an attribute value in DynamoDB JSON.
type value map[string]any

func encodeItem(item map[string]types.AttributeValue) map[string]value {
	encoded := map[string]value{}
	for name, v := range item {
		encoded[name] = encodeValue(v)
	}
	return encoded
}

func encodeValue(v types.AttributeValue) value {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return value{"S": v.Value}
	case *types.AttributeValueMemberN:
		return value{"N": v.Value}
	case *types.AttributeValueMemberB:
		return value{"B": v.Value}
	case *types.AttributeValueMemberBOOL:
		return value{"BOOL": v.Value}
	case *types.AttributeValueMemberNULL:
		return value{"NULL": v.Value}
	case *types.AttributeValueMemberSS:
		return value{"SS": slices.Sorted(slices.Values(v.Value))}
	case *types.AttributeValueMemberNS:
		return value{"NS": slices.Sorted(slices.Values(v.Value))}
	case *types.AttributeValueMemberBS:
		return value{"BS": slices.SortedFunc(slices.Values(v.Value), bytes.Compare)}
	case *types.AttributeValueMemberL:
		list := []value{}
		for _, element := range v.Value {
			list = append(list, encodeValue(element))
		}
		return value{"L": list}
	case *types.AttributeValueMemberM:
		return value{"M": encodeItem(v.Value)}
	}
	panic(fmt.Sprintf("unknown attribute value %T", v))
}

func decodeItem(t *testing.T, item map[string]value) map[string]types.AttributeValue {
	t.Helper()
	decoded := map[string]types.AttributeValue{}
	for name, v := range item {
		decoded[name] = decodeValue(t, v)
	}
	return decoded
}

func decodeValue(t *testing.T, encoded value) types.AttributeValue {
	t.Helper()
	require.Len(t, encoded, 1)
	for kind, v := range encoded {
		switch kind {
		case "S":
			return &types.AttributeValueMemberS{Value: v.(string)}
		case "N":
			return &types.AttributeValueMemberN{Value: v.(string)}
		case "B":
			return &types.AttributeValueMemberB{Value: decodeBytes(t, v)}
		case "BOOL":
			return &types.AttributeValueMemberBOOL{Value: v.(bool)}
		case "NULL":
			return &types.AttributeValueMemberNULL{Value: v.(bool)}
		case "SS":
			return &types.AttributeValueMemberSS{Value: decodeList(v, func(e any) string { return e.(string) })}
		case "NS":
			return &types.AttributeValueMemberNS{Value: decodeList(v, func(e any) string { return e.(string) })}
		case "BS":
			return &types.AttributeValueMemberBS{Value: decodeList(v, func(e any) []byte { return decodeBytes(t, e) })}
		case "L":
			return &types.AttributeValueMemberL{Value: decodeList(v, func(e any) types.AttributeValue {
				return decodeValue(t, e.(map[string]any))
			})}
		case "M":
			members := map[string]types.AttributeValue{}
			for name, member := range v.(map[string]any) {
				members[name] = decodeValue(t, member.(map[string]any))
			}
			return &types.AttributeValueMemberM{Value: members}
		}
		require.Fail(t, "unknown kind of attribute value", kind)
	}
	return nil
}

func decodeList[E any](list any, decode func(any) E) (decoded []E) {
	for _, element := range list.([]any) {
		decoded = append(decoded, decode(element))
	}
	return decoded
}

func decodeBytes(t *testing.T, encoded any) []byte {
	t.Helper()
	decoded, err := base64.StdEncoding.DecodeString(encoded.(string))
	require.NoError(t, err)
	return decoded
}
