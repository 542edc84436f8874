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

// Resolvers are the key resolvers that the command knows by name. An application may have one of
// its own, whose journals it cannot open.
var Resolvers = map[string]journal.KeyResolver{
	resolver.FNV1a.Name():     resolver.FNV1a,
	resolver.JavaHash.Name():  resolver.JavaHash,
	resolver.JSHash.Name():    resolver.JSHash,
	resolver.CRC32.Name():     resolver.CRC32,
	resolver.SipHash13.Name(): resolver.SipHash13,
}

// Open opens a journal of which only the journal table's name has to be known. What given says must
// be so; what it leaves open is taken from the tables: one DescribeTable and a few reads of one
// item. Payloads that were compressed are decoded; those that were encrypted cannot be, see
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

// take takes one setting from what is stored. It is false where the setting is given, or cannot be
// taken, so that each one is taken at most once.
func take(config *journal.Config, given journal.Config, m *journal.DescriptorMismatchError) bool {
	switch m.Field {
	case "key resolver":
		known, is := Resolvers[m.Stored]
		if given.Resolver != nil || !is {
			return false
		}
		config.Resolver = known
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
		if err := json.Unmarshal([]byte(m.Stored), &stored); err != nil || stored == config.Attributes {
			return false
		}
		config.Attributes = stored
		return true
	}
	return false
}

// takeNames takes from the journal table what is no part of the descriptor, or is needed to read
// it: the names of its keys and of its indexes. Without the permission to describe the table, they
// have to be the default ones.
func takeNames(ctx context.Context, client journal.Client, config *journal.Config) error {
	name := config.Tables.Journal
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		if err = dynamo.Explain(err, name); errors.Is(err, journal.ErrAccess) {
			return nil // opening tells whether it is this permission alone
		}
		return fmt.Errorf("describe table: %w", err)
	}
	partition, sort := keysOf(out.Table.KeySchema)
	config.Attributes.PartitionKey, config.Attributes.SortKey = partition, sort
	if isNumber(out.Table, sort) { // the packed layout's
		takePackedIndexes(out.Table, config)
		return nil
	}
	if tail := indexOf(out.Table, "journal-tail-index", true); tail != nil {
		config.Indexes.JournalTail = aws.ToString(tail.IndexName)
	}
	if byAggregate := indexOf(out.Table, "journal-aid-index", false); byAggregate != nil {
		config.Indexes.JournalAggregate = aws.ToString(byAggregate.IndexName)
	}
	return nil
}

// takePackedIndexes takes the names of the two indexes of the packed layout. The index of the tail
// is the one with a number as its sort key. The other one is sorted by the table's partition key.
func takePackedIndexes(table *types.TableDescription, config *journal.Config) {
	for _, index := range table.GlobalSecondaryIndexes {
		switch _, sort := keysOf(index.KeySchema); {
		case isNumber(table, sort):
			config.Indexes.JournalTail = aws.ToString(index.IndexName)
		case sort == config.Attributes.PartitionKey:
			config.Indexes.JournalAggregate = aws.ToString(index.IndexName)
		}
	}
}

func isNumber(table *types.TableDescription, attribute string) bool {
	return slices.ContainsFunc(table.AttributeDefinitions, func(a types.AttributeDefinition) bool {
		return aws.ToString(a.AttributeName) == attribute && a.AttributeType == types.ScalarAttributeTypeN
	})
}

// indexOf returns the index with the partition key of the table (or with another one) and a number
// as its sort key. It prefers the one with the given name. It returns nil if there is none.
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
