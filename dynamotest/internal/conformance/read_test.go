package conformance_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// queryCase queries a partition with the sort keys 0, 2, 4, ... 18. It wants the sort keys that the
// query returns, or a part of an error. The value :p is the partition key if the condition has it.
type queryCase struct {
	name       string
	condition  string
	parameters m
	more       func(*dynamodb.QueryInput)
	want       string
}

const allKeys = "0 2 4 6 8 10 12 14 16 18"

func limit(n int32) func(*dynamodb.QueryInput) {
	return func(in *dynamodb.QueryInput) { in.Limit = &n }
}

// after sets the start key: the key of the partition with more attributes.
func after(more m) func(*dynamodb.QueryInput) {
	return func(in *dynamodb.QueryInput) {
		in.Limit = aws.Int32(3)
		in.ExclusiveStartKey = attributes(more)
		if in.ExclusiveStartKey["p"] == nil {
			in.ExclusiveStartKey["p"] = in.ExpressionAttributeValues[":p"]
		}
	}
}

func backwards(in *dynamodb.QueryInput) { in.ScanIndexForward = aws.Bool(false) }

func filter(expression string) func(*dynamodb.QueryInput) {
	return func(in *dynamodb.QueryInput) { in.FilterExpression = &expression }
}

var queries = []queryCase{
	{"a partition", "p=:p", nil, nil, allKeys},
	{"spaces", "  p  =   :p ", nil, nil, allKeys},
	{"equal", "p = :p AND s = :s", m{":s": 4}, nil, "4"},
	{"less", "p = :p AND s < :s", m{":s": 4}, nil, "0 2"},
	{"less or equal", "p = :p AND s <= :s", m{":s": 4}, nil, "0 2 4"},
	{"greater", "p = :p AND s > :s", m{":s": 14}, nil, "16 18"},
	{"greater or equal", "p = :p AND s >= :s", m{":s": 14}, nil, "14 16 18"},
	{"the value in front", ":p = p AND :s < s", m{":s": 14}, nil, "16 18"},
	{"between", "p = :p AnD s BeTwEeN :s aNd :t", m{":s": 3, ":t": 8}, nil, "4 6 8"},
	{"between in the wrong order", "p = :p AND s BETWEEN :s AND :t", m{":s": 8, ":t": 3}, nil, "upper bound"},
	{"the sort key first", "s = :s AND p = :p", m{":s": 4}, nil, "4"},
	{"parentheses", "((s = :s) AND (p = :p))", m{":s": 4}, nil, "4"},
	{"redundant parentheses", "((s = :s) AND ((p = :p)))", m{":s": 4}, nil, "redundant parentheses"},
	{"names", "#p = :p AND #s = :s", m{"#p": "p", "#s": "s", ":s": 4}, nil, "4"},
	{"a name that is not used", "p = :p", m{"#p": "p"}, nil, "unused in expressions"},
	{"a value that is not defined", "p = :p AND s = :s", nil, nil, ":s"},
	{"the partition twice", "p = :p AND p = :p", nil, nil, "one condition per key"},
	{"the sort key twice", "p = :p AND s >= :s AND s <= :s", m{":s": 4}, nil, "ValidationException"},
	{"no partition", "s = :s", m{":s": 4}, nil, "Query condition missed key schema element: p"},
	{"a range of partitions", "p < :p", nil, nil, "Query key condition not supported"},
	{"not equal", "p = :p AND s <> :s", m{":s": 4}, nil, "ValidationException"},
	{"in", "p = :p AND s IN (:s)", m{":s": 4}, nil, "ValidationException"},
	{"or", "p = :p OR s = :s", m{":s": 4}, nil, "Invalid operator used in KeyConditionExpression: OR"},
	{"not", "p = :p AND NOT s = :s", m{":s": 4}, nil, "Invalid operator used in KeyConditionExpression: NOT"},
	{"begins_with of a number", "p = :p AND begins_with(s, :s)", m{":s": 4}, nil, "begins_with"},
	{"another function", "p = :p AND attribute_exists(s)", nil, nil, "attribute_exists"},
	{"an unknown function", "p = :p AND dog(s, :s)", m{":s": 4}, nil, "Invalid function name; function: dog"},
	{"another attribute", "p = :p AND a = :s", m{":s": 4}, nil, "Query condition missed key schema element: s"},
	{"a part", "p = :p AND a.b = :s", m{":s": 4}, nil, "nested"},
	{"two attributes", "p = s", nil, nil, "ValidationException"},
	{"an attribute alone", "p", nil, nil, "Syntax error"},
	{"an unknown operator", "p = :p AND s != :s", m{":s": 4}, nil, "Syntax error"},
	{"an empty condition", "", nil, nil, "The expression can not be empty"},
	{"a sort key of another type", "p = :p AND s = :s", m{":s": "4"}, nil, "Condition parameter type does not match schema type"},

	{"backwards", "p = :p AND s < :s", m{":s": 5}, backwards, "4 2 0"},
	{"a limit", "p = :p", nil, limit(3), "0 2 4"},
	{"a limit of 0", "p = :p", nil, limit(0), "greater than or equal to 1"},
	{"from a key", "p = :p", nil, after(m{"s": 8}), "10 12 14"},
	{"from a key that does not exist", "p = :p", nil, after(m{"s": 7}), "8 10 12"},
	{"from a key before all", "p = :p", nil, after(m{"s": -3}), "0 2 4"},
	{"from a key behind all", "p = :p", nil, after(m{"s": 80}), ""},
	{"from a key without sort key", "p = :p", nil, after(m{}), "The provided starting key is invalid"},
	{"from a key of another partition", "p = :p", nil, after(m{"p": "wrong", "s": 8}), "starting key"},
	{"from a key with more attributes", "p = :p", nil, after(m{"s": 8, "x": 1}), "The provided starting key is invalid"},
	{"from a key of another type", "p = :p", nil, after(m{"s": "dog"}), "does not match the schema"},
	{"from a key outside of the condition", "p = :p AND s > :s", m{":s": 8}, after(m{"s": 2}), "starting key"},
	{"a filter", "p = :p", m{":half": 5}, filter("half >= :half"), "10 12 14 16 18"},
	{"a filter by the key", "p = :p", m{":v": 5}, filter("s > :v"), "Filter Expression can only contain non-primary key attributes"},
	{"an empty filter", "p = :p", nil, filter(""), "The expression can not be empty"},
}

func TestQueriesReturnWhatAWSReturns(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	partition := db.partition()
	for i := range 10 {
		if err := db.put("sorted", m{"p": partition, "s": 2 * i, "half": i}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range queries {
		db.run(c.name, "", func() error {
			in := &dynamodb.QueryInput{TableName: aws.String("sorted"), KeyConditionExpression: &c.condition}
			in.ExpressionAttributeNames, in.ExpressionAttributeValues = split(c.parameters)
			if strings.Contains(c.condition, ":p") {
				if in.ExpressionAttributeValues == nil {
					in.ExpressionAttributeValues = object{}
				}
				in.ExpressionAttributeValues[":p"] = attribute(partition)
			}
			if c.more != nil {
				c.more(in)
			}
			out, err := db.client.Query(t.Context(), in)
			if err != nil {
				return refused(err, c.want)
			}
			return same(c.want, valuesOf(out.Items, "s"))
		})
	}
}

// valuesOf returns the values of an attribute.
func valuesOf(items []object, name string) string {
	var all []string
	for _, item := range items {
		all = append(all, textOf(item[name]))
	}
	return strings.Join(all, " ")
}

func TestAQueryWithoutSortKeyCannotStartBehindAKey(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	key := m{"p": db.partition()}
	query := func(start object) error {
		_, err := db.client.Query(t.Context(), &dynamodb.QueryInput{
			TableName: aws.String("items"), KeyConditionExpression: aws.String("p = :p"),
			ExpressionAttributeValues: attributes(m{":p": key["p"]}), ExclusiveStartKey: start,
		})
		return err
	}
	db.run("without start key", "", func() error { return query(nil) })
	db.run("with start key", "it returns nothing", func() error { return refused(query(attributes(key)), "ExclusiveStartKey") })
}

func TestPagesOfAnyLimitHaveAllItems(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	partition := db.partition()
	for i := range 10 {
		if err := db.put("sorted", m{"p": partition, "s": 2 * i}); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int32{1, 2, 3, 7, 10, 11} {
		db.run(fmt.Sprint("limit ", n), "", func() error {
			pages := dynamodb.NewQueryPaginator(db.client, &dynamodb.QueryInput{
				TableName: aws.String("sorted"), KeyConditionExpression: aws.String("p = :p"),
				ExpressionAttributeValues: attributes(m{":p": partition}), Limit: &n,
			})
			return same(allKeys, collect(t.Context(), pages.HasMorePages, func(ctx context.Context) ([]object, error) {
				out, err := pages.NextPage(ctx)
				if err != nil {
					return nil, err
				}
				return out.Items, nil
			}))
		})
	}
}

func collect(ctx context.Context, more func() bool, next func(context.Context) ([]object, error)) string {
	var all []object
	for more() {
		items, err := next(ctx)
		if err != nil {
			return err.Error()
		}
		all = append(all, items...)
	}
	return valuesOf(all, "s")
}

// projections are what projections of an item return, or a part of an error.
var projections = []struct {
	expression string
	names      m
	want       string
}{
	{"p", nil, `{p:"item"}`},
	{"a, c", nil, `{a:{b:[2 4 {x:"hi" y:"yo"}] c:5} c:"x"}`},
	{"lost", nil, "{}"},
	{"#n", m{"#n": "c"}, `{c:"x"}`},
	{"a.b", nil, `{a:{b:[2 4 {x:"hi" y:"yo"}]}}`},
	{"a.b[0]", nil, "{a:{b:[2]}}"},
	{"a.b[2].y", nil, `{a:{b:[{y:"yo"}]}}`},
	{"a.b[0], a.b[2].x", nil, `{a:{b:[2 {x:"hi"}]}}`},
	{"a.b[2].x, a.b[0]", nil, `{a:{b:[2 {x:"hi"}]}}`},
	{"a.b[7]", nil, "{}"},
	{"a.d, c.x, b.b[1]", nil, "{}"},
	{"a.c, c", nil, `{a:{c:5} c:"x"}`},
	{"a.b[0][0]", nil, "{}"},
	{"a, a", nil, overlap},
	{"a, a.b", nil, overlap},
	{"a.b[0], a.b.c", nil, "conflict"},
	{"a,", nil, "Syntax error"},
	{",a", nil, "Syntax error"},
	{"", nil, "The expression can not be empty"},
	{"#n", m{"#x": "c"}, "#n"},
	{"#n", m{"#n": "c", "#x": "c"}, "unused in expressions: keys: {#x}"},
	{"a.b[-1]", nil, "Syntax error"},
}

func TestProjectionsReturnWhatAWSReturns(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	if err := db.put("items", m{"p": "item", "a": m{"b": list{2, 4, m{"x": "hi", "y": "yo"}}, "c": 5}, "c": "x"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range projections {
		db.run(fmt.Sprint(c.expression, c.names), "", func() error {
			in := &dynamodb.GetItemInput{TableName: aws.String("items"), Key: attributes(m{"p": "item"}), ProjectionExpression: &c.expression}
			in.ExpressionAttributeNames, _ = split(c.names)
			out, err := db.client.GetItem(t.Context(), in)
			if err != nil {
				return refused(err, c.want)
			}
			return same(c.want, text(out.Item))
		})
	}
}
