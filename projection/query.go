package projection

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// DefaultLimit and MaxLimit are numbers of rows of a page.
const (
	DefaultLimit = 20
	MaxLimit     = 1_000
)

// Query selects rows of one partition of a table or of an index. Partition is required.
type Query struct {
	// Index is the name of an index of the table. Default: none, the rows of the table.
	Index string
	// Partition is the value of the partition key.
	Partition string
	// From and To limit the sort key. Both are included. Default: no limit.
	From, To types.AttributeValue
	// Prefix is the beginning of the sort key, in place of From and To. Default: none.
	Prefix string
	// Descending returns the rows in the descending order of the sort key. Default: ascending.
	Descending bool
	// Filters select rows for which all of them hold. DynamoDB reads, and bills, the other rows
	// too. Default: none.
	Filters []Filter
	// Consistent reads with strong consistency, at twice the cost. An Index does not allow it.
	Consistent bool
	// Limit is the maximum number of rows of a page. Default: DefaultLimit.
	Limit int
	// Token is the NextToken of the page before, for the same query. Only Limit and Consistent may
	// differ. Default: the first page.
	Token string
}

// Filter is a condition on attributes of a row. [Where] and [AnyOf] make one.
type Filter struct {
	attribute, operator string
	value               types.AttributeValue
	anyOf               []Filter
}

// Where returns a filter that compares an attribute with a value. The operator is =, <>, <, <=, >,
// >=, contains or begins_with. The attribute is not a key of the table or index that is queried. A
// row without the attribute matches <> only.
func Where(attribute, operator string, value types.AttributeValue) Filter {
	return Filter{attribute: attribute, operator: operator, value: value}
}

// AnyOf returns a filter that holds if one of the filters holds.
func AnyOf(filters ...Filter) Filter { return Filter{anyOf: append([]Filter{}, filters...)} }

// keys are the key attributes of a table or an index.
type keys struct {
	partition, sort string
	sortType        types.ScalarAttributeType
}

func (i Index) keys() keys { return keys{i.PartitionKey, i.SortKey, i.keyTypes()[i.SortKey]} }

// maxPartition and maxSort are the maximum sizes of keys in DynamoDB, in bytes.
const (
	maxPartition = 2048
	maxSort      = 1024
)

// request returns a query as a request, without limit and start key.
func (q Query) request(table Table) (*dynamodb.QueryInput, error) {
	in := &dynamodb.QueryInput{TableName: &table.Name, ScanIndexForward: aws.Bool(!q.Descending), ConsistentRead: aws.Bool(q.Consistent)}
	on := Index{PartitionKey: table.PartitionKey, SortKey: table.SortKey}.keys()
	if q.Index != "" {
		index, ok := table.index(q.Index)
		switch {
		case !ok:
			return nil, &QueryError{"Index", fmt.Sprintf("is %q, which table %q does not declare", q.Index, table.Name)}
		case q.Consistent:
			return nil, &QueryError{"Consistent", "is set, which an index does not allow"}
		}
		on, in.IndexName = index.keys(), &q.Index
	}
	if n := len(q.Partition); n == 0 || n > maxPartition {
		return nil, &QueryError{"Partition", fmt.Sprintf("has %d bytes, not 1 to %d", n, maxPartition)}
	}
	e := expression{names: map[string]string{}, values: map[string]types.AttributeValue{}}
	condition := e.name(on.partition) + " = " + e.value(Text(q.Partition))
	ofSort, err := q.ofSort(&e, on)
	if err != nil {
		return nil, err
	}
	filter, err := e.all(q.Filters, on)
	if err != nil {
		return nil, err
	}
	in.KeyConditionExpression, in.FilterExpression = aws.String(condition+ofSort), filter
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	return in, nil
}

// ofSort returns the condition on the sort key.
func (q Query) ofSort(e *expression, on keys) (string, error) {
	hasRange := q.From != nil || q.To != nil
	switch {
	case !hasRange && q.Prefix == "":
		return "", nil
	case on.sort == "":
		return "", &QueryError{"From, To or Prefix", "is set, but there is no sort key"}
	case hasRange && q.Prefix != "":
		return "", &QueryError{"Prefix", "is set together with From or To"}
	case !isOf(q.From, on.sortType) || !isOf(q.To, on.sortType) || q.Prefix != "" && on.sortType != types.ScalarAttributeTypeS:
		return "", &QueryError{"From, To or Prefix", fmt.Sprintf("has another type than the sort key %q, which is %s", on.sort, on.sortType)}
	case q.Prefix != "":
		return " AND begins_with(" + e.name(on.sort) + ", " + e.value(Text(q.Prefix)) + ")", nil
	case isAfter(q.From, q.To):
		return "", &QueryError{"From", "is after To"}
	case q.To == nil:
		return " AND " + e.name(on.sort) + " >= " + e.value(q.From), nil
	case q.From == nil:
		return " AND " + e.name(on.sort) + " <= " + e.value(q.To), nil
	}
	return " AND " + e.name(on.sort) + " BETWEEN " + e.value(q.From) + " AND " + e.value(q.To), nil
}

// isOf reports whether a limit, if there is one, has the type of the sort key.
func isOf(limit types.AttributeValue, is types.ScalarAttributeType) bool {
	switch limit.(type) {
	case nil:
		return true
	case *types.AttributeValueMemberS:
		return is == types.ScalarAttributeTypeS
	case *types.AttributeValueMemberN:
		return is == types.ScalarAttributeTypeN
	}
	return false
}

// isAfter reports whether a range of strings or numbers ends before it begins.
func isAfter(from, to types.AttributeValue) bool {
	switch from := from.(type) {
	case *types.AttributeValueMemberS:
		to, ok := to.(*types.AttributeValueMemberS)
		return ok && from.Value > to.Value
	case *types.AttributeValueMemberN:
		to, ok := to.(*types.AttributeValueMemberN)
		if !ok {
			return false
		}
		const precision = 160 // bits; DynamoDB stores 38 digits
		a, _, errA := big.ParseFloat(from.Value, 10, precision, big.ToNearestEven)
		b, _, errB := big.ParseFloat(to.Value, 10, precision, big.ToNearestEven)
		return errA == nil && errB == nil && a.Cmp(b) > 0
	}
	return false
}

// expression collects the placeholders of an expression. Every name has one, since DynamoDB
// reserves words such as "status".
type expression struct {
	names  map[string]string
	values map[string]types.AttributeValue
}

func (e *expression) name(attribute string) string {
	for placeholder, name := range e.names {
		if name == attribute {
			return placeholder
		}
	}
	placeholder := fmt.Sprint("#n", len(e.names))
	e.names[placeholder] = attribute
	return placeholder
}

func (e *expression) value(v types.AttributeValue) string {
	placeholder := fmt.Sprint(":v", len(e.values))
	e.values[placeholder] = v
	return placeholder
}

// all returns the filter expression for filters that must all hold.
func (e *expression) all(filters []Filter, on keys) (*string, error) {
	if len(filters) == 0 {
		return nil, nil
	}
	text, err := e.join(filters, " AND ", on)
	return &text, err
}

func (e *expression) join(filters []Filter, operator string, on keys) (string, error) {
	parts := make([]string, len(filters))
	for i, filter := range filters {
		var err error
		if parts[i], err = e.filter(filter, on); err != nil {
			return "", err
		}
	}
	return strings.Join(parts, operator), nil
}

func (e *expression) filter(f Filter, on keys) (string, error) {
	switch {
	case f.anyOf != nil && len(f.anyOf) == 0:
		return "", &QueryError{"Filters", "has AnyOf without a filter"}
	case f.anyOf != nil:
		text, err := e.join(f.anyOf, " OR ", on)
		return "(" + text + ")", err
	case f.attribute == "" || f.value == nil:
		return "", &QueryError{"Filters", "has a filter without an attribute or a value"}
	case f.attribute == on.partition || f.attribute == on.sort:
		return "", &QueryError{"Filters", fmt.Sprintf("has the key %q; use Partition, From, To or Prefix", f.attribute)}
	case isNested(f.value):
		return "", &QueryError{"Filters", fmt.Sprintf("compares %q with a list or a map", f.attribute)}
	case slices.Contains([]string{"contains", "begins_with"}, f.operator):
		return f.operator + "(" + e.name(f.attribute) + ", " + e.value(f.value) + ")", nil
	case slices.Contains([]string{"=", "<>", "<", "<=", ">", ">="}, f.operator):
		return e.name(f.attribute) + " " + f.operator + " " + e.value(f.value), nil
	}
	return "", &QueryError{"Filters", fmt.Sprintf("has the operator %q; use =, <>, <, <=, >, >=, contains or begins_with", f.operator)}
}

// isNested reports whether a value contains other values, which a page token would not recognize.
func isNested(value types.AttributeValue) bool {
	switch value.(type) {
	case *types.AttributeValueMemberL, *types.AttributeValueMemberM:
		return true
	}
	return false
}
