package projection

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// pageTokens makes and reads the page tokens of a query. A token is the key of the last row,
// without the partition of the query, and a checksum of this key and the query.
//
// The checksum detects mistakes, such as a token of another query, which would lead to a page with
// gaps. It has no secret, because there is nothing to protect: a query reads only its own
// partition, wherever it begins. So every process accepts the tokens of the others, also after a
// restart.
type pageTokens struct {
	query     []any
	partition string                               // attribute
	value     string                               // of the partition
	keys      map[string]types.ScalarAttributeType // the other attributes of a start key
}

const checksumBytes = 16

// newPageTokens returns the tokens for the query of a request. Name stands for the table.
func newPageTokens(name string, table Table, q Query, in *dynamodb.QueryInput) pageTokens {
	t := pageTokens{value: q.Partition, partition: table.PartitionKey, keys: Table{PartitionKey: table.PartitionKey, SortKey: table.SortKey}.keyTypes()}
	if index, ok := table.index(q.Index); ok {
		t.partition = index.PartitionKey
		maps.Copy(t.keys, index.keyTypes())
	}
	delete(t.keys, t.partition)
	// JSON, so that different queries have different bytes.
	t.query = []any{name, q.Index, in.KeyConditionExpression, in.FilterExpression, q.Descending, in.ExpressionAttributeNames, printed(in.ExpressionAttributeValues)}
	return t
}

// printed returns the values of an expression in a form that JSON can hold.
func printed(values map[string]types.AttributeValue) map[string]string {
	all := map[string]string{}
	for name, value := range values {
		all[name] = fmt.Sprintf("%T %+v", value, value)
	}
	return all
}

func (t pageTokens) checksum(data []byte) []byte {
	all, _ := json.Marshal(append(slices.Clone(t.query), data)) // cannot fail
	sum := sha256.Sum256(all)
	return sum[:checksumBytes]
}

// after returns the token of the page after a row.
func (t pageTokens) after(row Row) string {
	var values []string
	for _, attribute := range slices.Sorted(maps.Keys(t.keys)) {
		switch v := row[attribute].(type) {
		case *types.AttributeValueMemberS:
			values = append(values, v.Value)
		case *types.AttributeValueMemberN:
			values = append(values, v.Value)
		}
	}
	data, _ := json.Marshal(values) // cannot fail
	return base64.RawURLEncoding.EncodeToString(append(t.checksum(data), data...))
}

// read returns the key after which the page of a token begins. Errors: [ErrPageToken].
func (t pageTokens) read(token string) (map[string]types.AttributeValue, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) < checksumBytes {
		return nil, ErrPageToken
	}
	var values []string
	sum, data := raw[:checksumBytes], raw[checksumBytes:]
	if !bytes.Equal(sum, t.checksum(data)) || json.Unmarshal(data, &values) != nil || len(values) != len(t.keys) {
		return nil, ErrPageToken
	}
	key := map[string]types.AttributeValue{t.partition: Text(t.value)}
	for i, attribute := range slices.Sorted(maps.Keys(t.keys)) {
		key[attribute] = Text(values[i])
		if t.keys[attribute] == types.ScalarAttributeTypeN {
			key[attribute] = &types.AttributeValueMemberN{Value: values[i]}
		}
	}
	return key, nil
}
