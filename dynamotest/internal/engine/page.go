package engine

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/expression"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// maxPageSize is the largest number of bytes that Query and Scan read at once, before the filter.
const maxPageSize = 1 << 20

// reader is the common part of Query and Scan for one page. Its methods need the table's lock.
type reader struct {
	t           *table
	ix          *index // nil for the table itself
	consistency float64
	filter      *expression.Condition
	projection  *expression.Projection
	limit       int  // 0 for none
	count       bool // only count the items
	fetch       bool // a local index lacks attributes, which are read from the table

	items   []value.Item
	matched int
	scanned int
	size    int
	fetched float64 // in units
	last    *row    // where the page ends before the stretch
	err     error
}

func newReader(t *table, limit *int32, filter, projection *string, a *expression.Attributes) (*reader, error) {
	f, err := parseCondition("FilterExpression", filter, a)
	if err != nil {
		return nil, err
	}
	p, err := parseProjection(projection, a)
	if err != nil {
		return nil, err
	}
	return &reader{t: t, filter: f, projection: p, limit: int(aws.ToInt32(limit))}, nil
}

func (r *reader) rows() *rows {
	if r.ix != nil {
		return r.ix.rows
	}
	return r.t.rows
}

func (r *reader) key() keySchema {
	if r.ix != nil {
		return r.ix.key
	}
	return r.t.key
}

// open finds the index and checks the request.
func (r *reader) open(indexName *string, consistent *bool, selected types.Select) error {
	r.consistency = consistency(consistent)
	if indexName != nil {
		if r.ix = r.t.index(*indexName); r.ix == nil {
			return apierror.Validation("The table does not have the specified index: %s", *indexName)
		}
		if r.ix.global && r.consistency == strong {
			return apierror.Validation("Consistent reads are not supported on global secondary indexes")
		}
	}
	switch selected {
	case types.SelectCount:
		r.count = true
	case types.SelectAllAttributes:
		if r.ix != nil && r.ix.projection.ProjectionType != types.ProjectionTypeAll {
			if r.ix.global {
				return apierror.Validation("One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported "+
					"for global secondary index %s because its projection type is not ALL", r.ix.name)
			}
			r.fetch = true
		}
	}
	if r.ix != nil {
		return r.checkProjected()
	}
	return nil
}

// checkProjected handles requested attributes that the index lacks.
func (r *reader) checkProjected() error {
	var missing []string
	if r.projection != nil {
		missing = r.missing(r.projection.Attributes())
	}
	if len(missing) > 0 && r.ix.global {
		return apierror.Validation("One or more parameter values were invalid: Global secondary index %s does not project [%s]",
			r.ix.name, strings.Join(missing, ", "))
	}
	r.fetch = r.fetch || len(missing) > 0
	return nil
}

// missing returns those attributes that the index lacks.
func (r *reader) missing(names []string) []string {
	var missing []string
	for _, name := range names {
		if !r.ix.projects(r.t, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// checkSelect compares Select with the rest of the request. source is the projection.
func checkSelect(selected types.Select, source *string, indexName *string) error {
	if err := member("select", selected, selected.Values(), selected.Values()...); err != nil {
		return err
	}
	switch {
	case selected == types.SelectSpecificAttributes && source == nil:
		return apierror.Validation("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
	case selected == types.SelectAllProjectedAttributes && indexName == nil:
		return apierror.Validation("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	case source == nil || selected == "" || selected == types.SelectSpecificAttributes:
		return nil
	case selected == types.SelectCount:
		return apierror.Validation("Cannot specify the ProjectionExpression when choosing to get only the Count")
	}
	return apierror.Validation("Cannot specify the ProjectionExpression when choosing to get %s", selected)
}

// visit adds a row to the page and reports whether there is room for another one.
func (r *reader) visit(at *row) bool {
	if r.scanned > 0 && (r.limit > 0 && r.scanned == r.limit || r.size >= maxPageSize) {
		return false
	}
	r.scanned++
	r.size += at.size
	item := at.item
	if r.fetch {
		base := r.t.at(r.t.key.positionOf(at.item))
		item = base.content()
		r.fetched += r.consistency * readUnits(int(sizeOf(base)))
	}
	r.last = at
	if r.filter != nil {
		holds, err := r.filter.Holds(item)
		if err != nil {
			r.err = err
			return false
		}
		if !holds {
			return true
		}
	}
	r.matched++
	if !r.count {
		r.items = append(r.items, project(r.projection, item))
	}
	return true
}
