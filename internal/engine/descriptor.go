package engine

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
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// The descriptor: its keys, and its attributes.
const (
	// CompressedFormat is the format version of packed tables in which events and states may be
	// compressed. Older tables have firstFormat, as all classic tables.
	CompressedFormat = 2
	firstFormat      = 1

	// A shard key never ends in a letter, so the descriptor's keys are never those of an event.
	DescriptorPartition = "millrace"
	DescriptorSort      = "descriptor"

	AttrFormat        = "millrace_format"
	attrShards        = "millrace_shards"
	attrResolver      = "millrace_resolver"
	AttrSnapshotTable = "millrace_snapshot_table"
	attrAttributes    = "millrace_attributes"
	attrLayout        = "millrace_layout"
	attrUnit          = "millrace_occurred_at_unit"   // absent for milliseconds
	attrRequired      = "millrace_required_encodings" // absent for none

	attrRequiredByType = "millrace_required_by_type" // absent for none
	AttrRestored       = "millrace_restored"         // absent where the tables were never restored
	AttrGrowths        = "millrace_tail_partitions"  // absent where the tail has not grown
)

// DescriptorNames are the attributes of the descriptor.
var DescriptorNames = []string{
	AttrFormat, attrShards, attrResolver, AttrSnapshotTable, attrAttributes, attrLayout, attrRequired, attrRequiredByType, attrUnit, AttrGrowths, AttrRestored,
}

// Descriptor holds the settings on which all processes that use a journal must agree.
type Descriptor struct {
	Table         string
	Format        int
	Resolver      string
	Shards        int
	SnapshotTable string // two tables would mean two heads of one aggregate
	Attributes    journaltype.Attributes
	Layout        journaltype.Layout
	Unit          time.Duration // of the times of events

	RequiredEncodings []string
	RequiredByType    map[string][]string
	Growths           []Growth // of the tail
	Restored          string   // changes with every restore
}

// newestFormat returns the format version of new tables. It is the highest that this version reads.
func newestFormat(layout journaltype.Layout) int {
	if layout == journaltype.Packed {
		return CompressedFormat
	}
	return firstFormat
}

// Describe returns the descriptor of settings.
func Describe(c *Settings) Descriptor {
	return Descriptor{
		Table:         c.Tables.Journal,
		Format:        newestFormat(c.Layout),
		Layout:        c.Layout,
		Resolver:      c.Resolver.Name(),
		Shards:        c.Shards,
		SnapshotTable: c.Tables.Snapshot,
		Attributes:    c.Attributes,
		Unit:          c.OccurredAtUnit,

		RequiredEncodings: c.RequiredEncodings,
		RequiredByType:    c.RequiredByType,
	}
}

// attributes returns the names as JSON, as the item holds them.
func (stored Descriptor) attributes() string {
	text, _ := json.Marshal(stored.Attributes) // a struct of strings always marshals
	return string(text)
}

// requiredEncodings returns the names in one line, sorted.
func (stored Descriptor) requiredEncodings() string {
	return strings.Join(slices.Sorted(slices.Values(stored.RequiredEncodings)), ",")
}

// Matches returns a *journal.DescriptorMismatchError if this process has other settings than the
// stored ones. The format version may be lower, and the process may name fewer encodings by type.
func (stored Descriptor) Matches(given Descriptor) error {
	byType := requiredByType(stored.RequiredByType)
	for _, c := range []struct{ field, stored, given string }{
		{layoutField, string(stored.Layout), string(given.Layout)},
		{"key resolver", stored.Resolver, given.Resolver},
		{"shard count", strconv.Itoa(stored.Shards), strconv.Itoa(given.Shards)},
		{snapshotTableField, strconv.Quote(stored.SnapshotTable), strconv.Quote(given.SnapshotTable)},
		{"attribute names", stored.attributes(), given.attributes()},
		{"unit of times", table.TimeUnits[stored.Unit], table.TimeUnits[given.Unit]},
		{"required encodings", strconv.Quote(stored.requiredEncodings()), strconv.Quote(given.requiredEncodings())},
		{"encodings required by type", byType.String(), byType.with(given.RequiredByType).String()},
	} {
		if c.stored != c.given {
			return &journaltype.DescriptorMismatchError{Table: stored.Table, Field: c.field, Stored: c.stored, Given: c.given}
		}
	}
	return nil
}

// FindDescriptor reads the descriptor and takes the layout from it. Each layout has other table
// keys, so it tries the keys of each.
func (j *Engine) FindDescriptor(ctx context.Context) (stored Descriptor, err error) {
	for _, kind := range j.kinds {
		j.use(kind.Name)
		if stored, err = j.ReadDescriptor(ctx); !isOfOtherKeys(err) {
			break
		}
	}
	if err == nil {
		j.use(stored.Layout)
	}
	return stored, err
}

// GivenDescriptor reads the descriptor with the layout that the config names. If the table has the
// keys of another layout, the error names the field layout.
func (j *Engine) GivenDescriptor(ctx context.Context) (Descriptor, error) {
	stored, err := j.ReadDescriptor(ctx)
	if !isOfOtherKeys(err) {
		return stored, err
	}
	given := j.Config.Layout
	defer j.use(given)
	if other, findErr := j.FindDescriptor(ctx); findErr == nil && other.Layout != given {
		return Descriptor{}, &journaltype.DescriptorMismatchError{Table: other.Table, Field: layoutField, Stored: string(other.Layout), Given: string(given)}
	}
	return Descriptor{}, err
}

func isOfOtherKeys(err error) bool {
	var mismatch *journaltype.DescriptorMismatchError
	return errors.As(err, &mismatch) && mismatch.Field == keysOfTable
}

// layoutField is the field of the error for another layout.
const layoutField = "layout"

// snapshotTableField is the field of the error for another snapshot table.
const snapshotTableField = "snapshot table"

// keysOfTable is the field of the error for a table whose keys have other names or types.
const keysOfTable = "keys of"

// ReadDescriptor reads the stored descriptor, strongly consistent.
func (j *Engine) ReadDescriptor(ctx context.Context) (Descriptor, error) {
	name := j.Config.Tables.Journal
	it, err := j.GetItem(ctx, name, j.Layout.DescriptorKey())
	if isKeyMismatch(err) {
		a := j.Config.Attributes
		return Descriptor{}, &journaltype.DescriptorMismatchError{
			Table: name, Field: keysOfTable, Stored: "other names",
			Given: fmt.Sprintf("%q and %q in Classic.Attributes", a.PartitionKey, a.SortKey),
		}
	}
	if err != nil {
		return Descriptor{}, err
	}
	if it == nil {
		return Descriptor{}, fmt.Errorf("%w: table %q: journal.Create creates new tables, journal.Adopt takes over tables of other programs",
			journaltype.ErrNoDescriptor, name)
	}
	d := Descriptor{Table: name, Layout: journaltype.Classic, Unit: time.Millisecond}
	// Without this attribute the tables are of a version that had only one layout.
	if layout, ok := table.StringOf(it[attrLayout]); ok {
		d.Layout = journaltype.Layout(layout)
	}
	var unitErr error
	if unit, ok := table.StringOf(it[attrUnit]); ok {
		d.Unit, unitErr = time.ParseDuration(unit)
	}
	if names, ok := table.StringOf(it[attrRequired]); ok {
		d.RequiredEncodings = strings.Split(names, ",")
	}
	var byTypeErr error
	if byType, ok := table.StringOf(it[attrRequiredByType]); ok {
		byTypeErr = json.Unmarshal([]byte(byType), &d.RequiredByType)
	}
	format, ok := table.UintOf(it[AttrFormat])
	if newest := newestFormat(d.Layout); ok && format > uint64(newest) { //nolint:gosec // it is positive
		// Only a later version of this package can read the rest.
		return Descriptor{}, &journaltype.DescriptorMismatchError{
			Table: name, Field: "format version", Stored: strconv.FormatUint(format, 10), Given: strconv.Itoa(newest),
		}
	}
	shards, shardsOK := table.UintOf(it[attrShards])
	mapping, mappingOK := table.StringOf(it[attrAttributes])
	var resolverOK, snapshotOK bool
	d.Resolver, resolverOK = table.StringOf(it[attrResolver])
	d.SnapshotTable, snapshotOK = table.StringOf(it[AttrSnapshotTable])
	var growthsOK bool
	d.Growths, growthsOK = GrowthsOf(it)
	d.Restored, _ = table.StringOf(it[AttrRestored])
	if !ok || !growthsOK || unitErr != nil || byTypeErr != nil || table.ValidateUnit(d.Unit) != nil || !shardsOK || shards == 0 || shards > table.MaxShards || !resolverOK || !snapshotOK || !mappingOK ||
		json.Unmarshal([]byte(mapping), &d.Attributes) != nil {
		return Descriptor{}, &journaltype.CorruptItemError{
			Table: name, PartitionKey: DescriptorPartition, SortKey: DescriptorSort,
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

// WriteDescriptor stores the descriptor if there is none, and compares the stored one with
// j.config. It adds encodings of types to the stored one.
func (j *Engine) WriteDescriptor(ctx context.Context) error {
	d := Describe(&j.Config)
	it := j.Layout.DescriptorKey()
	it[AttrFormat] = table.NumberValue(d.Format)
	it[attrShards] = table.NumberValue(d.Shards)
	it[attrResolver] = table.StringValue(d.Resolver)
	it[AttrSnapshotTable] = table.StringValue(d.SnapshotTable)
	it[attrAttributes] = table.StringValue(d.attributes())
	it[attrLayout] = table.StringValue(string(d.Layout))
	if d.Unit != time.Millisecond {
		it[attrUnit] = table.StringValue(d.Unit.String())
	}
	if len(d.RequiredEncodings) > 0 {
		it[attrRequired] = table.StringValue(d.requiredEncodings())
	}
	if len(d.RequiredByType) > 0 {
		it[attrRequiredByType] = table.StringValue(requiredByType(d.RequiredByType).String())
	}
	name := j.Config.Tables.Journal
	_, err := j.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                &name,
		Item:                     it,
		ConditionExpression:      aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames: table.AttributeNames("#pk", j.Config.Attributes.PartitionKey),
	})
	var exists *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &exists) {
		return dynamo.Explain(err, name)
	}
	stored, err := j.ReadDescriptor(ctx)
	if err != nil {
		return err
	}
	others := d
	others.RequiredByType = nil
	if err := stored.Matches(others); err != nil {
		return err
	}
	for range maxChanges {
		if stored.Matches(d) == nil {
			return nil
		}
		if stored, err = j.requireMore(ctx, stored, d); err != nil {
			return err
		}
	}
	return stored.Matches(d)
}

// maxChanges limits the changes of other processes that WriteDescriptor follows.
const maxChanges = 10

// OrOtherLayout returns the error about another layout if that is why the keys of a table differ,
// and else err.
func (j *Engine) OrOtherLayout(ctx context.Context, err error) error {
	if !errors.As(err, new(*journaltype.DescriptorMismatchError)) {
		return err
	}
	var other *journaltype.DescriptorMismatchError
	if _, found := j.GivenDescriptor(ctx); errors.As(found, &other) && other.Field == layoutField {
		return other
	}
	return err
}

// VerifyUnused refuses tables that have items but no descriptor. It looks for items first: another
// process can only add the descriptor in between.
func (j *Engine) VerifyUnused(ctx context.Context) error {
	for _, input := range j.Layout.Tables() {
		name := *input.TableName
		out, err := j.Client.Scan(ctx, &dynamodb.ScanInput{TableName: &name, Limit: aws.Int32(1), ConsistentRead: aws.Bool(true)})
		if err != nil {
			return dynamo.Explain(err, name)
		}
		if len(out.Items) == 0 {
			continue
		}
		if _, err := j.ReadDescriptor(ctx); err != nil {
			return fmt.Errorf("table %q is not empty: %w", name, err)
		}
	}
	return nil
}
