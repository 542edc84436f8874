package engine

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/expression"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// Query implements the operation.
func (db *Database) Query(c *Cost, in *dynamodb.QueryInput, f *Interference) (*dynamodb.QueryOutput, error) {
	t, err := db.table(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := first(
		bounded("limit", in.Limit, 1, maxInt32),
		checkSelect(in.Select, in.ProjectionExpression, in.IndexName),
	); err != nil {
		return nil, err
	}
	if in.KeyConditionExpression == nil {
		return nil, apierror.Validation("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	a, err := placeholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		filterSource(in.FilterExpression), source{"KeyConditionExpression", in.KeyConditionExpression, true}, projectionSource(in.ProjectionExpression))
	if err != nil {
		return nil, err
	}
	r, err := newReader(t, in.Limit, in.FilterExpression, in.ProjectionExpression, a)
	if err != nil {
		return nil, err
	}
	keyCondition, err := expression.ParseKeyCondition(*in.KeyConditionExpression, a)
	if err != nil {
		return nil, err
	}
	if err := a.CheckUsed(); err != nil {
		return nil, err
	}
	unlock, err := db.lockFor(t, f)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := r.open(in.IndexName, in.ConsistentRead, in.Select); err != nil {
		return nil, err
	}
	s, err := r.stretch(keyCondition)
	if err != nil {
		return nil, err
	}
	if err := r.checkFilter(); err != nil {
		return nil, err
	}
	after, err := r.startKey(in.ExclusiveStartKey)
	if err != nil {
		return nil, err
	}
	if after != nil && r.ix == nil && s.only {
		return nil, apierror.Validation("The provided exclusive start key is invalid: ExclusiveStartKey: " +
			"a query of a table without a sort key returns at most one item, and nothing follows it")
	}
	forward := in.ScanIndexForward == nil || *in.ScanIndexForward
	if after != nil && (s.side(*after) != 0 || !s.only && s.ends(&row{position: *after}, forward)) {
		return nil, apierror.Validation("The provided starting key does not match the range key predicate")
	}

	rows := r.rows()
	if r.ix == nil {
		rows = db.seenRows(t, f, s.partition)
	}
	more := false
	s.walk(rows, forward, after, func(at *row) bool {
		more = !r.visit(at)
		return !more
	})
	if r.err != nil {
		return nil, r.err
	}
	if err := db.admit(c, func() []demand { return r.demands(s.partition, s.key) }); err != nil {
		return nil, err
	}
	r.charge(c)
	return &dynamodb.QueryOutput{
		Items: r.returned(), Count: int32(r.matched), ScannedCount: int32(r.scanned), //nolint:gosec // at most a page
		LastEvaluatedKey: r.lastKey(more, s.ends(r.last, forward)),
	}, nil
}

const maxInt32 = 1<<31 - 1

func (r *reader) stretch(k *expression.KeyCondition) (stretch, error) {
	schema := r.key()
	var sort *expression.Key
	if schema.sort.name != "" {
		sort = &expression.Key{Name: schema.sort.name, Type: schema.sort.kind}
	}
	within, err := k.For(expression.Key{Name: schema.partition.name, Type: schema.partition.kind}, sort)
	if err != nil {
		return stretch{}, err
	}
	for i, v := range []types.AttributeValue{within.Partition, within.Low, within.High, within.Prefix} {
		if v == nil {
			continue
		}
		if err := checkKeySize(min(i, 1), v); err != nil {
			return stretch{}, err
		}
	}
	s := stretchOf(within)
	s.only = sort == nil
	return s, nil
}

// checkFilter refuses a filter on the key of the query, or on an attribute that the index lacks.
func (r *reader) checkFilter() error {
	if r.filter == nil {
		return nil
	}
	for _, name := range r.filter.Attributes() {
		for _, k := range r.key().attributes() {
			if k.name == name {
				return apierror.Validation("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", name)
			}
		}
	}
	if r.ix == nil {
		return nil
	}
	if missing := r.missing(r.filter.Attributes()); len(missing) > 0 {
		return apierror.Validation("One or more parameter values were invalid: Secondary index %s does not project one or more filter attributes: [%s]",
			r.ix.name, strings.Join(missing, ", "))
	}
	return nil
}

// startKey returns the position of an exclusive start key.
func (r *reader) startKey(key value.Item) (*position, error) {
	if key == nil {
		return nil, nil //nolint:nilnil // from the beginning
	}
	key, err := value.NormalizeItem(key)
	if err != nil {
		return nil, err
	}
	attributes := r.t.key.attributes()
	if r.ix != nil {
		attributes = append(attributes, r.ix.key.attributes()...)
	}
	names := map[string]bool{}
	for _, a := range attributes {
		names[a.name] = true
		if value.Type(key[a.name]) != string(a.kind) || emptyKind(key[a.name]) != "" {
			return nil, apierror.Validation("The provided starting key is invalid: The provided key element does not match the schema")
		}
	}
	if len(names) != len(key) {
		return nil, apierror.Validation("The provided starting key is invalid: The provided key element does not match the schema")
	}
	p := r.key().positionOf(key)
	if r.ix != nil {
		p.tie = tieOf(r.t.key.positionOf(key))
	}
	return &p, nil
}

// returned returns the items, or none if only their count was requested.
func (r *reader) returned() []value.Item {
	if r.count {
		return nil
	}
	if r.items == nil {
		return []value.Item{}
	}
	return r.items
}

// lastKey returns the key after which the next page begins. As in DynamoDB, nothing may follow: if
// the last row reaches the limit, the end is not known, unless no row can follow that row.
func (r *reader) lastKey(more, atEnd bool) value.Item {
	if !more && (atEnd || (r.limit == 0 || r.scanned < r.limit) && r.size < maxPageSize) {
		return nil
	}
	if r.last == nil {
		return nil
	}
	key := r.t.key.keyOf(r.last.item)
	if r.ix != nil {
		for name, v := range r.ix.key.keyOf(r.last.item) {
			key[name] = v
		}
	}
	return key
}

func (r *reader) charge(c *Cost) {
	c.Scanned += r.scanned
	if !r.count {
		c.Returned += len(r.items)
	}
	c.read(r.t, r.ix, r.units())
	if r.fetched > 0 {
		c.read(r.t, nil, r.fetched)
	}
}

// units returns the units of the page, without the units of attributes read from the table.
func (r *reader) units() float64 { return r.consistency * readUnits(r.size) }

// demands returns the units that a page of a query needs of its partition. A local index is in the
// partition of the table.
func (r *reader) demands(partition string, key types.AttributeValue) []demand {
	k := bucketKey{t: r.t, partition: partition}
	if r.ix != nil && r.ix.global {
		k.ix = r.ix
	}
	return []demand{{k, key, r.units() + r.fetched}}
}
