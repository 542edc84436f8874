package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/compress"
	"github.com/millrace-dev/millrace/journal/resolver"
)

// Resolvers are the key resolvers that the command knows, by name. It cannot open the journals of
// an application with its own resolver.
var Resolvers = map[string]journal.KeyResolver{
	resolver.FNV1a.Name():     resolver.FNV1a,
	resolver.JavaHash.Name():  resolver.JavaHash,
	resolver.JSHash.Name():    resolver.JSHash,
	resolver.CRC32.Name():     resolver.CRC32,
	resolver.SipHash13.Name(): resolver.SipHash13,
}

// Open opens a journal. Only the name of the journal table is required. Settings in given must
// match the tables. Open reads the other settings from the tables, with one DescribeTable and a few
// reads of one item. The journal decodes compressed payloads, and cannot decode encrypted ones, see
// [journal.Journal.Decode].
//
// Errors: those of journal.Open.
func Open(ctx context.Context, client journal.Client, given journal.Config) (*journal.Journal, error) {
	gzip, err := compress.Gzip(compress.Config{})
	if err != nil {
		return nil, err
	}
	if err := given.Validate(); err != nil {
		return nil, err
	}
	config := given
	config.Encodings = []journal.Encoding{journal.ForReading(gzip)}
	if err := takeNames(ctx, client, &config); err != nil {
		return nil, err
	}
	for {
		j, err := journal.Open(ctx, client, config)
		var mismatch *journal.DescriptorMismatchError
		if !errors.As(err, &mismatch) || !take(&config, given, mismatch) {
			return j, err
		}
	}
}

// take takes one setting from the stored descriptor. It returns false if the setting is in given,
// or cannot be taken, so that each setting is taken at most once.
func take(config *journal.Config, given journal.Config, m *journal.DescriptorMismatchError) bool {
	switch m.Field {
	case "key resolver":
		known, is := Resolvers[m.Stored]
		if given.Classic.Resolver != nil || !is {
			return false
		}
		config.Classic.Resolver = known
		return true
	case "snapshot table":
		name, err := strconv.Unquote(m.Stored)
		if given.Tables.Snapshot != "" || err != nil {
			return false
		}
		config.Tables.Snapshot = name
		return true
	case "attribute names":
		var stored journal.Attributes
		if err := json.Unmarshal([]byte(m.Stored), &stored); err != nil || stored == config.Classic.Attributes {
			return false
		}
		config.Classic.Attributes = stored
		return true
	}
	return false
}

// takeNames takes the names of keys and indexes from the journal table. They are not in the
// descriptor, or are needed to read it. Without the permission to describe the table it keeps the
// default names.
func takeNames(ctx context.Context, client journal.Client, config *journal.Config) error {
	name := config.Tables.Journal
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		if err = dynamo.Explain(err, name); errors.Is(err, journal.ErrAccess) {
			return nil // Open fails if other permissions are missing too
		}
		return fmt.Errorf("describe table: %w", err)
	}
	partition, sort := keysOf(out.Table.KeySchema)
	if config.Layout == journal.Packed || isNumber(out.Table, sort) {
		return nil // packed tables always have the default names
	}
	names := &config.Classic
	names.Attributes.PartitionKey, names.Attributes.SortKey = partition, sort
	if tail := indexOf(out.Table, "journal-tail-index", true); tail != nil {
		names.Indexes.JournalTail = aws.ToString(tail.IndexName)
	}
	if byAggregate := indexOf(out.Table, "journal-aid-index", false); byAggregate != nil {
		names.Indexes.JournalAggregate = aws.ToString(byAggregate.IndexName)
	}
	return nil
}

func isNumber(table *types.TableDescription, attribute string) bool {
	return slices.ContainsFunc(table.AttributeDefinitions, func(a types.AttributeDefinition) bool {
		return aws.ToString(a.AttributeName) == attribute && a.AttributeType == types.ScalarAttributeTypeN
	})
}

// indexOf returns an index with a number as its sort key. Its partition key is the partition key of
// the table if byPartition is true, and else another attribute. It prefers the index with the
// preferred name. It returns nil if there is none.
func indexOf(table *types.TableDescription, preferred string, byPartition bool) (found *types.GlobalSecondaryIndexDescription) {
	partition, _ := keysOf(table.KeySchema)
	for i := range table.GlobalSecondaryIndexes {
		index := &table.GlobalSecondaryIndexes[i]
		hash, sort := keysOf(index.KeySchema)
		if isNumber(table, sort) && (hash == partition) == byPartition && (found == nil || aws.ToString(index.IndexName) == preferred) {
			found = index
		}
	}
	return found
}

func keysOf(schema []types.KeySchemaElement) (partition, sort string) {
	for _, key := range schema {
		if key.KeyType == types.KeyTypeHash {
			partition = aws.ToString(key.AttributeName)
		} else {
			sort = aws.ToString(key.AttributeName)
		}
	}
	return partition, sort
}
