package expression_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest/internal/expression"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

func parseUpdate(t *testing.T, source string) *expression.Update {
	t.Helper()
	u, err := expression.ParseUpdate(source, attributesOf(source))
	require.NoError(t, err)
	return u
}

// Only the nested parts are returned, as by the service. DynamoDB Local returns the whole
// attribute.
var selections = []struct{ update, before, after string }{
	{"SET a = :n", "a: 'x'", "a: 5"},
	{"SET zz = :n", "", "zz: 5"},
	{"REMOVE a", "a: 'x'", ""},
	{"ADD n :one", "n: 5", "n: 6"},
	{"DELETE ss :all", "ss: <a b>", ""},
	{"SET m.c = :n", "m: {c: 'c'}", "m: {c: 5}"},
	{"SET m.zz = :n", "", "m: {zz: 5}"},
	{"SET m.b[1].c = :n, m.c = :n", "m: {b: [{c: 'c'}], c: 'c'}", "m: {b: [{c: 5}], c: 5}"},
	{"SET l[2] = :s, l[0] = :s", "l: [0 2]", "l: ['x' 'x']"},
	{"SET l[9] = :s", "", ""},
	{"REMOVE l[1]", "l: [1]", "l: [2]"},
	{"REMOVE l[1], l[3]", "l: [1 3]", "l: [2]"},
}

func TestSelectGivesTheWrittenPathsAlone(t *testing.T) {
	t.Parallel()
	for _, c := range selections {
		t.Run(c.update, func(t *testing.T) {
			t.Parallel()
			u := parseUpdate(t, c.update)
			after, err := u.Apply(fixture)
			require.NoError(t, err)
			assert.Equal(t, c.before, showItem(u.Select(fixture)))
			assert.Equal(t, c.after, showItem(u.Select(after)))
		})
	}
}

func TestSelectGivesTheAttributesThatDynamoDBLocalReturns(t *testing.T) {
	t.Parallel()
	emulator := newLocal(t)
	returned := func(source string, which types.ReturnValue) []string {
		emulator.put("items", fixture)
		names, values := placeholders(source)
		out, err := emulator.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName:                 aws.String("items"),
			Key:                       value.Item{"pk": fixture["pk"]},
			UpdateExpression:          aws.String(source),
			ExpressionAttributeNames:  names,
			ExpressionAttributeValues: values,
			ReturnValues:              which,
		})
		require.NoError(t, err)
		return slices.Sorted(maps.Keys(out.Attributes))
	}
	for _, c := range selections {
		u := parseUpdate(t, c.update)
		after, err := u.Apply(fixture)
		require.NoError(t, err)
		assert.Equal(t, slices.Sorted(maps.Keys(u.Select(fixture))), returned(c.update, types.ReturnValueUpdatedOld), c.update)
		assert.Equal(t, slices.Sorted(maps.Keys(u.Select(after))), returned(c.update, types.ReturnValueUpdatedNew), c.update)
	}
}

func TestApplyLeavesTheItemAlone(t *testing.T) {
	t.Parallel()
	before := showItem(fixture)
	for _, g := range updates {
		for _, r := range g.rows {
			ourUpdate(r.expression)
			require.Equal(t, before, showItem(fixture), "after %s", r.expression)
		}
	}
}

func TestAnUpdateMakesAnItem(t *testing.T) {
	t.Parallel()
	u := parseUpdate(t, "SET a = if_not_exists(a, :s) ADD n :n, ss :ss REMOVE zz DELETE ns :ns")
	for _, item := range []value.Item{nil, {}, {"pk": s("k")}} {
		after, err := u.Apply(item)
		require.NoError(t, err)
		delete(after, "pk")
		assert.Equal(t, "a: 'x', n: 5, ss: <a z>", showItem(after))
	}
}

var withoutItem = map[string]bool{
	"attribute_not_exists(pk)": true,
	"attribute_exists(pk)":     false,
	"a <> :s":                  true,
	"a <> n":                   true,
	"a = :s":                   false,
	"a = n":                    false,
	"NOT a < :s":               true,
	"size(a) < :n":             false,
	":s = :s":                  true,
}

func TestAConditionHoldsWithoutAnItem(t *testing.T) {
	t.Parallel()
	for source, want := range withoutItem {
		c, err := expression.ParseCondition("ConditionExpression", source, attributesOf(source))
		require.NoError(t, err)
		holds, err := c.Holds(nil)
		require.NoError(t, err)
		assert.Equal(t, want, holds, source)
	}
}

func TestAConditionHoldsWithoutAnItemOnDynamoDBLocal(t *testing.T) {
	t.Parallel()
	emulator := newLocal(t)
	for source, want := range withoutItem {
		names, values := placeholders(source)
		_, err := emulator.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName:                 aws.String("items"),
			Key:                       value.Item{"pk": s("another")},
			ConditionExpression:       aws.String(source),
			ExpressionAttributeNames:  names,
			ExpressionAttributeValues: values,
		})
		assert.Equal(t, want, err == nil, source)
	}
}

func TestAttributesAreThoseOfTheItem(t *testing.T) {
	t.Parallel()
	source := "(size(a.b) = :n OR #p IN (m.c, l[0])) AND NOT begins_with(a, :s) AND zz BETWEEN x AND y"
	c, err := expression.ParseCondition("FilterExpression", source, attributesOf(source))
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "pk", "m", "l", "zz", "x", "y"}, c.Attributes())

	assert.ElementsMatch(t, []string{"a", "m", "l", "n"}, parseUpdate(t, "SET m.b = zz, a = yy REMOVE l[0], m.c ADD n :n").Attributes())

	p, err := expression.ParseProjection("a, m.b, m.c", attributesOf(""))
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"a", "m"}, p.Attributes())
}

func BenchmarkParseCondition(b *testing.B) {
	for name, source := range map[string]string{
		"not exists": "attribute_not_exists(pk)",
		"three":      "attribute_exists(pk) AND n = :n AND #a <> :s",
	} {
		names, values := placeholders(source)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := expression.ParseCondition("ConditionExpression", source, expression.NewAttributes(names, values)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
