package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// plan holds the changes of UpdateTable after the whole request was checked.
type plan struct {
	settings settings
	global   map[*index]indexSettings // of the indexes that change
	created  *index
	deleted  *index
}

// plan requires t.mu, and changes nothing.
func (t *table) plan(in *dynamodb.UpdateTableInput, actions []indexAction) (plan, error) {
	next := plan{settings: t.settings, global: map[*index]indexSettings{}}
	if err := checkOneAtATime(actions); err != nil {
		return next, err
	}
	if in.StreamSpecification != nil {
		return next, apierror.Validation("Table has no stream to disable")
	}
	if err := t.planThroughput(&next.settings, in); err != nil {
		return next, err
	}
	for _, a := range actions {
		if err := t.planAction(&next, in, a); err != nil {
			return next, err
		}
	}
	if err := t.planBilling(&next); err != nil {
		return next, err
	}
	if err := next.planAttributes(t, in.AttributeDefinitions); err != nil {
		return next, err
	}
	if in.DeletionProtectionEnabled != nil {
		next.settings.deletionProtection = *in.DeletionProtectionEnabled
	}
	if in.TableClass != "" {
		next.settings.class = in.TableClass
	}
	if in.SSESpecification != nil {
		next.settings.encryption = copyOfEncryption(in.SSESpecification)
	}
	return next, nil
}

func (t *table) planThroughput(s *settings, in *dynamodb.UpdateTableInput) error {
	if in.BillingMode != "" {
		s.billing = in.BillingMode
	}
	given := in.ProvisionedThroughput
	if given == nil && s.billing == types.BillingModeProvisioned {
		given = s.throughput // it is only compared with other new values
	}
	if err := checkThroughput(s.billing, given, in.OnDemandThroughput); err != nil {
		return err
	}
	if in.ProvisionedThroughput != nil && equalThroughput(s.throughput, in.ProvisionedThroughput) {
		return throughputSame("table", s.throughput)
	}
	s.throughput = copyOfThroughput(given)
	s.onDemand = mergedOnDemand(s.onDemand, in.OnDemandThroughput)
	if s.billing == types.BillingModeProvisioned {
		s.onDemand = nil
	}
	return nil
}

func equalThroughput(a, b *types.ProvisionedThroughput) bool {
	return a != nil && *a.ReadCapacityUnits == *b.ReadCapacityUnits && *a.WriteCapacityUnits == *b.WriteCapacityUnits
}

func throughputSame(what string, t *types.ProvisionedThroughput) error {
	return apierror.Validation("The provisioned throughput for the %[1]s will not change. The requested value equals the current value. "+
		"Current ReadCapacityUnits provisioned for the %[1]s: %[2]d. Requested ReadCapacityUnits: %[2]d. "+
		"Current WriteCapacityUnits provisioned for the %[1]s: %[3]d. Requested WriteCapacityUnits: %[3]d. "+
		"Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.",
		what, *t.ReadCapacityUnits, *t.WriteCapacityUnits)
}

// mergedOnDemand returns the new maximums, and the old ones where no new one is set.
func mergedOnDemand(old, next *types.OnDemandThroughput) *types.OnDemandThroughput {
	if next == nil || old == nil {
		return copyOfOnDemand(cmp.Or(next, old))
	}
	return copyOfOnDemand(&types.OnDemandThroughput{
		MaxReadRequestUnits:  cmp.Or(next.MaxReadRequestUnits, old.MaxReadRequestUnits),
		MaxWriteRequestUnits: cmp.Or(next.MaxWriteRequestUnits, old.MaxWriteRequestUnits),
	})
}

func (t *table) planAction(next *plan, in *dynamodb.UpdateTableInput, a indexAction) error {
	ix := t.index(a.name)
	switch {
	case a.create != nil:
		if ix != nil {
			return apierror.Validation("Attempting to create an index which already exists")
		}
		// Existing definitions do not count: the request must define the attributes of the new
		// index.
		created, err := a.create.parse(t.key, in.AttributeDefinitions, next.settings.billing)
		if err != nil {
			return err
		}
		next.created = created
	case ix == nil && a.delete:
		return notFound("Requested resource not found")
	case ix == nil:
		return indexMissing(a.name)
	case a.delete && !ix.global:
		return apierror.Validation("Cannot delete an index that is not a GlobalSecondaryIndex")
	case a.delete:
		next.deleted = ix
	case !ix.global:
		return indexMissing(a.name)
	default:
		return next.planUpdate(ix, a.update)
	}
	return nil
}

func (next *plan) planUpdate(ix *index, u *types.UpdateGlobalSecondaryIndexAction) error {
	given := u.ProvisionedThroughput
	if given == nil && next.settings.billing == types.BillingModeProvisioned {
		given = ix.settings.throughput
	}
	if err := checkIndexThroughput(ix.name, next.settings.billing, given, u.OnDemandThroughput); err != nil {
		return err
	}
	if u.ProvisionedThroughput != nil && equalThroughput(ix.settings.throughput, u.ProvisionedThroughput) {
		return throughputSame("index "+ix.name, ix.settings.throughput)
	}
	next.global[ix] = indexSettings{
		throughput: copyOfThroughput(given), onDemand: mergedOnDemand(ix.settings.onDemand, u.OnDemandThroughput),
	}
	return nil
}

// planBilling removes the throughput of all indexes if the table changes to on-demand billing. If
// the table changes from on-demand billing, it requires a throughput for each.
func (t *table) planBilling(next *plan) error {
	if next.settings.billing == t.settings.billing {
		return nil
	}
	var without []string
	for _, ix := range t.indexes {
		if !ix.global || ix == next.deleted {
			continue
		}
		s, changed := next.global[ix]
		switch {
		case next.settings.billing == types.BillingModePayPerRequest:
			s.throughput = nil
			next.global[ix] = s
		case !changed:
			without = append(without, ix.name)
		default:
			s.onDemand = nil
			next.global[ix] = s
		}
	}
	if len(without) > 0 {
		return invalid("ProvisionedThroughput must be specified for index: %s", strings.Join(without, ","))
	}
	return nil
}

// planAttributes adds definitions to those of the table, and removes those that no key uses.
func (next *plan) planAttributes(t *table, given []types.AttributeDefinition) error {
	if hasTwice(namesOfAttributes(given)) {
		return attributeTwice()
	}
	known := slices.Concat(t.settings.attributes, copyOfAttributes(given))
	for _, d := range given {
		if old := definitionOf(known, *d.AttributeName); old.AttributeType != d.AttributeType {
			return apierror.Validation("invalid attribute, SchemaElement redefined should be of same type as previously defined")
		}
	}
	indexes := next.indexes(t)
	if err := checkIndexCount(indexes); err != nil {
		return err
	}
	if err := checkIndexes(indexes); err != nil {
		return err
	}
	next.settings.attributes = nil
	for _, name := range namesInUse(t.key, indexes) {
		next.settings.attributes = append(next.settings.attributes, *definitionOf(known, name))
	}
	return nil
}

// checkIndexCount refuses too many indexes, with another error than CreateTable.
func checkIndexCount(indexes []*index) error {
	global := 0
	for _, ix := range indexes {
		if ix.global {
			global++
		}
	}
	if global > maxGlobalIndexes {
		return limitExceeded("Number of global secondary indexes exceeds per-table limit")
	}
	return nil
}

func (next *plan) indexes(t *table) []*index {
	indexes := make([]*index, 0, len(t.indexes)+1)
	for _, ix := range t.indexes {
		if ix != next.deleted {
			indexes = append(indexes, ix)
		}
	}
	if next.created != nil {
		indexes = append(indexes, next.created)
	}
	return indexes
}

// become applies a plan, and describes the table as DynamoDB does during the change. It requires
// t.mu.
func (t *table) become(next plan) *types.TableDescription {
	t.settings = next.settings
	for ix, s := range next.global {
		ix.settings = s
	}
	if next.created != nil {
		t.build(next.created)
	}
	t.indexes = next.indexes(t)
	d := t.describe(types.TableStatusUpdating)
	for i := range d.GlobalSecondaryIndexes {
		x := &d.GlobalSecondaryIndexes[i]
		ix := t.index(*x.IndexName)
		if _, changed := next.global[ix]; changed {
			x.IndexStatus = types.IndexStatusUpdating
		}
		if ix == next.created {
			x.IndexStatus, x.Backfilling = types.IndexStatusCreating, aws.Bool(false)
		}
	}
	if next.deleted != nil {
		d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, t.describeGlobal(next.deleted, types.IndexStatusDeleting))
	}
	return d
}
