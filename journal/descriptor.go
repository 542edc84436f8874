package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	formatVersion = 1

	// No shard key ends in a letter, so the descriptor's keys are never those of an event.
	descriptorPartition = "millrace"
	descriptorSort      = "descriptor"

	attrFormat        = "millrace_format"
	descriptorShards  = "shards"
	descriptorHash    = "hash"
	descriptorHeads   = "snapshot_table"
	descriptorMapping = "attributes"
)

// descriptor is what every process that uses the same journal must agree on.
type descriptor struct {
	Table      string
	Format     int
	Hash       string
	Shards     int
	Heads      string // two snapshot tables would give one aggregate two heads
	Attributes Attributes
}

func describe(c Config) descriptor {
	return descriptor{
		Table:      c.Tables.Journal,
		Format:     formatVersion,
		Hash:       c.Resolver.Name(),
		Shards:     c.Shards,
		Heads:      c.Tables.Snapshot,
		Attributes: c.Attributes,
	}
}

// matches compares the stored descriptor with the one of this process.
func (stored descriptor) matches(given descriptor) error {
	for _, c := range []struct{ field, stored, given string }{
		{"format version", strconv.Itoa(stored.Format), strconv.Itoa(given.Format)},
		{"key resolver", stored.Hash, given.Hash},
		{"shard count", strconv.Itoa(stored.Shards), strconv.Itoa(given.Shards)},
		{"snapshot table", strconv.Quote(stored.Heads), strconv.Quote(given.Heads)},
		{"attribute names", stored.Attributes.String(), given.Attributes.String()},
	} {
		if c.stored != c.given {
			return &DescriptorMismatchError{Table: stored.Table, Field: c.field, Stored: c.stored, Given: c.given}
		}
	}
	return nil
}

// String lists the stored names in one line.
func (a Attributes) String() string {
	text, _ := json.Marshal(a) // a struct of strings always marshals
	return string(text)
}

func (j *Journal) descriptorKey() item {
	return item{
		j.config.Attributes.PartitionKey: stringValue(descriptorPartition),
		j.config.Attributes.SortKey:      stringValue(descriptorSort),
	}
}

func (j *Journal) readDescriptor(ctx context.Context) (descriptor, error) {
	table := j.config.Tables.Journal
	it, err := j.getItem(ctx, table, j.descriptorKey())
	if code(err) == "ValidationException" {
		return descriptor{}, fmt.Errorf("%w: table %q has no key %q / %q: set Attributes.PartitionKey and SortKey to the names of its keys: %w",
			ErrDescriptorMismatch, table, j.config.Attributes.PartitionKey, j.config.Attributes.SortKey, err)
	}
	if err != nil {
		return descriptor{}, err
	}
	if it == nil {
		return descriptor{}, fmt.Errorf("%w: table %q: journal.Create makes new tables, journal.Adopt takes over those that somebody else made",
			ErrNoDescriptor, table)
	}
	d := descriptor{Table: table}
	format, formatOK := uintOf(it[attrFormat])
	shards, shardsOK := uintOf(it[descriptorShards])
	hash, hashOK := stringOf(it[descriptorHash])
	heads, headsOK := stringOf(it[descriptorHeads])
	mapping, mappingOK := stringOf(it[descriptorMapping])
	if !formatOK || !shardsOK || !hashOK || !headsOK || !mappingOK || json.Unmarshal([]byte(mapping), &d.Attributes) != nil {
		return descriptor{}, &CorruptItemError{
			Table: table, PartitionKey: descriptorPartition, SortKey: descriptorSort,
			Reason: "is not a descriptor that this version reads",
		}
	}
	d.Format, d.Shards, d.Hash, d.Heads = int(format), int(shards), hash, heads
	return d, nil
}

// writeDescriptor stores the descriptor unless there is one, and then compares.
func (j *Journal) writeDescriptor(ctx context.Context) error {
	d := describe(j.config)
	it := j.descriptorKey()
	it[attrFormat] = numberValue(d.Format)
	it[descriptorShards] = numberValue(d.Shards)
	it[descriptorHash] = stringValue(d.Hash)
	it[descriptorHeads] = stringValue(d.Heads)
	it[descriptorMapping] = stringValue(d.Attributes.String())
	table := j.config.Tables.Journal
	_, err := j.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                &table,
		Item:                     it,
		ConditionExpression:      aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames: attributeNames("#pk", j.config.Attributes.PartitionKey),
	})
	var exists *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &exists) {
		return classify(err, table)
	}
	stored, err := j.readDescriptor(ctx)
	if err != nil {
		return err
	}
	return stored.matches(d)
}
