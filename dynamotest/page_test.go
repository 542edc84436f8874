package dynamotest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Source: Developer Guide, "Paginating table query results": a page has up to 1 MB.
func TestAPageEndsWithTheItemThatFillsAMegabyte(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int32{1<<18 - 1: 5, 1 << 18: 4, 300_000: 4} {
		tab := newTable(t)
		for i := range 6 {
			tab.put("a", i+1, object{"x": s(strings.Repeat("x", size-1-len("p")-len("a")-len("s")-2))})
		}
		in := querying("", "a")
		in.FilterExpression, in.ExpressionAttributeValues[":no"] = aws.String("x = :no"), s("no")
		out, err := tab.client.Query(t.Context(), in)
		require.NoError(t, err)
		assert.Equal(t, want, out.ScannedCount, "of items of %d bytes, before the filter", size)
		assert.Equal(t, keyOf("a", int(want)), out.LastEvaluatedKey)
	}
}

func TestAQueryReadsItsStretchInBothDirectionsPageByPage(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	// As text they have another order.
	for _, number := range []any{-100, -20, -3, 0, 3, "3.5", 20, 100, "1e20"} {
		require.NoError(t, done(t.Context(), tab.client.PutItem, &dynamodb.PutItemInput{
			TableName: aws.String("tab"), Item: object{"p": s("a"), "s": n(number)},
		}))
	}
	for condition, want := range map[string][]string{
		"p = :p":                         {"-100", "-20", "-3", "0", "3", "3.5", "20", "100", "100000000000000000000"},
		"p = :p AND s BETWEEN :l AND :h": {"-20", "-3", "0", "3", "3.5", "20"},
		"p = :p AND s > :l":              {"-3", "0", "3", "3.5", "20", "100", "100000000000000000000"},
		"p = :p AND s <= :h":             {"-100", "-20", "-3", "0", "3", "3.5", "20"},
		"p = :p AND s < :l":              {"-100"},
		"p = :p AND s = :h":              {"20"},
	} {
		for _, forward := range []bool{true, false} {
			values := object{":p": s("a")}
			if strings.Contains(condition, ":l") {
				values[":l"] = n(-20)
			}
			if strings.Contains(condition, ":h") {
				values[":h"] = n(20)
			}
			pages := dynamodb.NewQueryPaginator(tab.client, &dynamodb.QueryInput{
				TableName: aws.String("tab"), KeyConditionExpression: aws.String(condition), ExpressionAttributeValues: values,
				ScanIndexForward: aws.Bool(forward), Limit: aws.Int32(2),
			})
			var got []string
			for pages.HasMorePages() {
				page, err := pages.NextPage(t.Context())
				require.NoError(t, err)
				for _, item := range page.Items {
					number := item["s"].(*types.AttributeValueMemberN).Value
					if forward {
						got = append(got, number)
					} else {
						got = append([]string{number}, got...)
					}
				}
			}
			assert.Equal(t, want, got, "%s, forward %v", condition, forward)
		}
	}
}

func TestThePrefixOfASortKeyIsOfBytes(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	for i, text := range []string{"a", "ab", "abc", "ab\U0010ffff", "ac", "b"} {
		tab.put("a", i, object{"l": s(text)})
	}
	for _, forward := range []bool{true, false} {
		in := querying("local", "a")
		in.KeyConditionExpression, in.ExpressionAttributeValues[":l"] = aws.String("p = :p AND begins_with(l, :l)"), s("ab")
		in.ScanIndexForward = aws.Bool(forward)
		out, err := tab.client.Query(t.Context(), in)
		require.NoError(t, err)
		assert.EqualValues(t, 3, out.Count)
	}
}

func TestTheSegmentsOfAScanAreTheWholeTable(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	want := map[string]int{}
	for i := range 100 {
		p := fmt.Sprint("partition ", i)
		tab.put(p, 1, object{"g": s(fmt.Sprint(i % 7))})
		want[p] = 1
	}
	for _, segments := range []int32{1, 2, 3, 10, 1000} {
		for _, index := range []*string{nil, aws.String("global")} {
			got := map[string]int{}
			for segment := range segments {
				pages := dynamodb.NewScanPaginator(tab.client, &dynamodb.ScanInput{
					TableName: aws.String("tab"), IndexName: index, Segment: aws.Int32(segment), TotalSegments: aws.Int32(segments), Limit: aws.Int32(7),
				})
				for pages.HasMorePages() {
					page, err := pages.NextPage(t.Context())
					require.NoError(t, err)
					for _, item := range page.Items {
						got[item["p"].(*types.AttributeValueMemberS).Value]++
					}
				}
			}
			assert.Equal(t, want, got, "%d segments", segments)
		}
	}
}

func TestAStartKeyMustBeOneOfTheQuery(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	for name, key := range map[string]object{
		"another partition":  keyOf("b", 1),
		"half a key":         {"p": s("a")},
		"another type":       {"p": s("a"), "s": s("1")},
		"more than a key":    {"p": s("a"), "s": n(1), "x": n(1)},
		"outside the range":  keyOf("a", 100),
		"not a scalar value": {"p": s("a"), "s": &types.AttributeValueMemberBOOL{Value: true}},
	} {
		in := querying("", "a")
		in.KeyConditionExpression, in.ExpressionAttributeValues[":h"] = aws.String("p = :p AND s < :h"), n(50)
		in.ExclusiveStartKey = key
		assert.ErrorContains(t, done(t.Context(), tab.client.Query, in), "The provided starting key", name)
	}
}

func TestAPageThatTheLastItemFillsMayHaveAnother(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	for i := range 4 {
		tab.put("a", i+1, object{"fill": fill(1<<18, len("p")+len("a")+len("s")+2)})
	}
	out, err := tab.client.Query(t.Context(), querying("", "a"))
	require.NoError(t, err)
	assert.EqualValues(t, 4, out.Count)
	assert.Equal(t, keyOf("a", 4), out.LastEvaluatedKey)
}

func TestAStartKeyMustBeOneOfTheSegment(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	refused := 0
	for segment := range int32(2) {
		err := done(t.Context(), tab.client.Scan, &dynamodb.ScanInput{
			TableName: aws.String("tab"), Segment: aws.Int32(segment), TotalSegments: aws.Int32(2), ExclusiveStartKey: keyOf("a", 1),
		})
		if err != nil {
			require.ErrorContains(t, err, "Exclusive start key must lie within the segment")
			refused++
		}
	}
	assert.Equal(t, 1, refused)
}

func TestABoundIncludesAllRowsOfAnIndexThatShareIt(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	for i := range 5 {
		tab.put("a", i, object{"l": s("x")})
	}
	for _, forward := range []bool{true, false} {
		for _, operator := range []string{"=", "<=", ">="} {
			in := querying("local", "a")
			in.KeyConditionExpression, in.ExpressionAttributeValues[":l"] = aws.String("p = :p AND l "+operator+" :l"), s("x")
			in.ScanIndexForward = aws.Bool(forward)
			out, err := tab.client.Query(t.Context(), in)
			require.NoError(t, err)
			assert.EqualValues(t, 5, out.Count, "%s, forward %v", operator, forward)
		}
	}
}

// createSimple creates a table with a partition key, and a sort key if it has a type.
func (t *table) createSimple(name string, sort types.ScalarAttributeType) {
	t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("p"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("p"), KeyType: types.KeyTypeHash}},
	}
	if sort != "" {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String("s"), AttributeType: sort})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String("s"), KeyType: types.KeyTypeRange})
	}
	require.NoError(t, done(t.Context(), t.client.CreateTable, in))
}

func TestAPrefixMayEndWithTheHighestByte(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.createSimple("binary", types.ScalarAttributeTypeB)
	b := func(bytes ...byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: bytes} }
	for _, key := range []types.AttributeValue{b(1, 0xfe), b(1, 0xff), b(1, 0xff, 1), b(2), b(0xff), b(0xff, 0xff)} {
		require.NoError(t, done(t.Context(), tab.client.PutItem, &dynamodb.PutItemInput{
			TableName: aws.String("binary"), Item: object{"p": s("a"), "s": key},
		}))
	}
	for _, forward := range []bool{true, false} {
		for _, prefix := range []types.AttributeValue{b(1, 0xff), b(0xff)} {
			in := querying("", "a")
			in.TableName, in.ScanIndexForward = aws.String("binary"), aws.Bool(forward)
			in.KeyConditionExpression, in.ExpressionAttributeValues[":b"] = aws.String("p = :p AND begins_with(s, :b)"), prefix
			out, err := tab.client.Query(t.Context(), in)
			require.NoError(t, err)
			assert.EqualValues(t, 2, out.Count, "forward %v", forward)
		}
	}
}

func TestNothingIsBehindTheOnlyItemOfAPartition(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.createSimple("simple", "")
	require.NoError(t, done(t.Context(), tab.client.PutItem, &dynamodb.PutItemInput{TableName: aws.String("simple"), Item: object{"p": s("a")}}))
	in := querying("", "a")
	in.TableName, in.Limit = aws.String("simple"), aws.Int32(1)
	out, err := tab.client.Query(t.Context(), in)
	require.NoError(t, err)
	assert.EqualValues(t, 1, out.Count)
	assert.Nil(t, out.LastEvaluatedKey)
}
