package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

const (
	formatVersion = 1

	// A shard key never ends in a letter, so the descriptor's keys are never those of an event.
	descriptorPartition = "millrace"
	descriptorSort      = "descriptor"

	attrFormat        = "millrace_format"
	attrShards        = "millrace_shards"
	attrResolver      = "millrace_resolver"
	attrSnapshotTable = "millrace_snapshot_table"
	attrAttributes    = "millrace_attributes"
	attrLayout        = "millrace_layout"
	attrUnit          = "millrace_occurred_at_unit"   // absent for milliseconds
	attrRequired      = "millrace_required_encodings" // absent for none
	attrRestored      = "millrace_restored"           // absent where the tables were never restored
	attrGrowths       = "millrace_tail_partitions"    // absent where the tail has not grown
)

// descriptorNames are the attributes of the descriptor.
var descriptorNames = []string{
	attrFormat, attrShards, attrResolver, attrSnapshotTable, attrAttributes, attrLayout, attrRequired, attrUnit, attrGrowths, attrRestored,
}

// descriptor holds the settings on which all processes that use a journal must agree.
type descriptor struct {
	Table         string
	Format        int
	Resolver      string
	Shards        int
	SnapshotTable string // two tables would mean two heads of one aggregate
	Attributes    Attributes
	Layout        Layout
	Unit          time.Duration // of the times of events

	RequiredEncodings []string
	Growths           []growth // of the tail
	Restored          string   // changes with every restore
}

func describe(c *settings) descriptor {
	return descriptor{
		Table:         c.Tables.Journal,
		Format:        formatVersion,
		Layout:        c.Layout,
		Resolver:      c.Resolver.Name(),
		Shards:        c.Shards,
		SnapshotTable: c.Tables.Snapshot,
		Attributes:    c.Attributes,
		Unit:          c.OccurredAtUnit,

		RequiredEncodings: c.RequiredEncodings,
	}
}

// requiredEncodings returns the names in one line, sorted.
func (stored descriptor) requiredEncodings() string {
	return strings.Join(slices.Sorted(slices.Values(stored.RequiredEncodings)), ",")
}

// matches returns a [*DescriptorMismatchError] if this process has other settings than the stored
// ones.
func (stored descriptor) matches(given descriptor) error {
	for _, c := range []struct{ field, stored, given string }{
		{layoutField, string(stored.Layout), string(given.Layout)},
		{"format version", strconv.Itoa(stored.Format), strconv.Itoa(given.Format)},
		{"key resolver", stored.Resolver, given.Resolver},
		{"shard count", strconv.Itoa(stored.Shards), strconv.Itoa(given.Shards)},
		{snapshotTableField, strconv.Quote(stored.SnapshotTable), strconv.Quote(given.SnapshotTable)},
		{"attribute names", stored.Attributes.String(), given.Attributes.String()},
		{"unit of times", timeUnits[stored.Unit], timeUnits[given.Unit]},
		{"required encodings", strconv.Quote(stored.requiredEncodings()), strconv.Quote(given.requiredEncodings())},
	} {
		if c.stored != c.given {
			return &DescriptorMismatchError{Table: stored.Table, Field: c.field, Stored: c.stored, Given: c.given}
		}
	}
	return nil
}

// findDescriptor reads the descriptor and takes the layout from it. Each layout has other table
// keys, so it tries the keys of each.
func (j *engine) findDescriptor(ctx context.Context) (stored descriptor, err error) {
	for _, kind := range j.kinds {
		j.use(kind.name)
		if stored, err = j.readDescriptor(ctx); !isOfOtherKeys(err) {
			break
		}
	}
	if err == nil {
		j.use(stored.Layout)
	}
	return stored, err
}

// givenDescriptor reads the descriptor with the layout that the config names. If the table has the
// keys of another layout, the error names the field layout.
func (j *engine) givenDescriptor(ctx context.Context) (descriptor, error) {
	stored, err := j.readDescriptor(ctx)
	if !isOfOtherKeys(err) {
		return stored, err
	}
	given := j.config.Layout
	defer j.use(given)
	if other, findErr := j.findDescriptor(ctx); findErr == nil && other.Layout != given {
		return descriptor{}, &DescriptorMismatchError{Table: other.Table, Field: layoutField, Stored: string(other.Layout), Given: string(given)}
	}
	return descriptor{}, err
}

func isOfOtherKeys(err error) bool {
	var mismatch *DescriptorMismatchError
	return errors.As(err, &mismatch) && mismatch.Field == keysOfTable
}

// layoutField is the field of the error for another layout.
const layoutField = "layout"

// snapshotTableField is the field of the error for another snapshot table.
const snapshotTableField = "snapshot table"

// keysOfTable is the field of the error for a table whose keys have other names or types.
const keysOfTable = "keys of"

func (j *engine) readDescriptor(ctx context.Context) (descriptor, error) {
	table := j.config.Tables.Journal
	it, err := j.getItem(ctx, table, j.layout.descriptorKey())
	if isKeyMismatch(err) {
		a := j.config.Attributes
		return descriptor{}, &DescriptorMismatchError{
			Table: table, Field: keysOfTable, Stored: "other names",
			Given: fmt.Sprintf("%q and %q in Attributes.PartitionKey and SortKey", a.PartitionKey, a.SortKey),
		}
	}
	if err != nil {
		return descriptor{}, err
	}
	if it == nil {
		return descriptor{}, fmt.Errorf("%w: table %q: journal.Create creates new tables, journal.Adopt takes over tables of other programs",
			ErrNoDescriptor, table)
	}
	d := descriptor{Table: table, Layout: Classic, Unit: time.Millisecond}
	// Without this attribute the tables are of a version that had only one layout.
	if layout, ok := stringOf(it[attrLayout]); ok {
		d.Layout = Layout(layout)
	}
	var unitErr error
	if unit, ok := stringOf(it[attrUnit]); ok {
		d.Unit, unitErr = time.ParseDuration(unit)
	}
	if names, ok := stringOf(it[attrRequired]); ok {
		d.RequiredEncodings = strings.Split(names, ",")
	}
	format, ok := uintOf(it[attrFormat])
	if ok && format > formatVersion {
		// Only a later version of this package can read the rest.
		return descriptor{}, &DescriptorMismatchError{
			Table: table, Field: "format version", Stored: strconv.FormatUint(format, 10), Given: strconv.Itoa(formatVersion),
		}
	}
	shards, shardsOK := uintOf(it[attrShards])
	mapping, mappingOK := stringOf(it[attrAttributes])
	var resolverOK, snapshotOK bool
	d.Resolver, resolverOK = stringOf(it[attrResolver])
	d.SnapshotTable, snapshotOK = stringOf(it[attrSnapshotTable])
	var growthsOK bool
	d.Growths, growthsOK = growthsOf(it)
	d.Restored, _ = stringOf(it[attrRestored])
	if !ok || !growthsOK || unitErr != nil || validateUnit(d.Unit) != nil || !shardsOK || shards == 0 || shards > maxShards || !resolverOK || !snapshotOK || !mappingOK ||
		json.Unmarshal([]byte(mapping), &d.Attributes) != nil {
		return descriptor{}, &CorruptItemError{
			Table: table, PartitionKey: descriptorPartition, SortKey: descriptorSort,
			Reason: "is not a descriptor that this version reads",
		}
	}
	d.Format, d.Shards = int(format), int(shards)
	return d, nil
}

// isKeyMismatch compares the text of the error with that of DynamoDB and of DynamoDB Local, because
// the error has no type or code of its own.
func isKeyMismatch(err error) bool {
	return dynamo.Code(err) == "ValidationException" &&
		(strings.Contains(err.Error(), "key element does not match") || strings.Contains(err.Error(), "required keys") || strings.Contains(err.Error(), "Type mismatch for key"))
}

// writeDescriptor stores the descriptor if there is none, and compares the stored one with
// j.config.
func (j *engine) writeDescriptor(ctx context.Context) error {
	d := describe(&j.config)
	it := j.layout.descriptorKey()
	it[attrFormat] = numberValue(d.Format)
	it[attrShards] = numberValue(d.Shards)
	it[attrResolver] = stringValue(d.Resolver)
	it[attrSnapshotTable] = stringValue(d.SnapshotTable)
	it[attrAttributes] = stringValue(d.Attributes.String())
	it[attrLayout] = stringValue(string(d.Layout))
	if d.Unit != time.Millisecond {
		it[attrUnit] = stringValue(d.Unit.String())
	}
	if len(d.RequiredEncodings) > 0 {
		it[attrRequired] = stringValue(d.requiredEncodings())
	}
	table := j.config.Tables.Journal
	_, err := j.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                &table,
		Item:                     it,
		ConditionExpression:      aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames: attributeNames("#pk", j.config.Attributes.PartitionKey),
	})
	var exists *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &exists) {
		return dynamo.Explain(err, table)
	}
	stored, err := j.readDescriptor(ctx)
	if err != nil {
		return err
	}
	return stored.matches(d)
}
