package conformance_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// stored is the item on which the conditions are evaluated. It has no attributes q and z.
var stored = m{
	"n": 1, "two": 2, "t": "cat", "b": []byte("cat"), "flag": true, "nothing": nil, "l": list{1, "x", list{2}},
	"doc": m{"a": 1, "b": list{"x", m{"c": 3}}, "s": set{"g", "h"}}, "ss": set{"x", "y"}, "ns": numbers{"1", "2"}, "type": "N",
}

// conditionCase wants "true", "false" or a part of an error.
type conditionCase struct {
	condition  string
	parameters m
	want       string
}

var conditions = []conditionCase{
	{"n = :v", m{":v": 1}, "true"},
	{"n = :v", m{":v": number("1.0")}, "true"},
	{"n = :v", m{":v": "1"}, "false"},
	{"flag = :v", m{":v": 1}, "false"},
	{"q = :v", m{":v": 1}, "false"},
	{"q = z", nil, "false"},
	{"ss = :v", m{":v": set{"y", "x"}}, "true"},
	{"doc = :v", m{":v": m{"a": 1, "b": list{"x", m{"c": 3}}, "s": set{"h", "g"}}}, "true"},
	{"doc = :v", m{":v": m{"a": 1, "b": list{"x", m{"c": 3}}, "s": set{"h", "bad"}}}, "false"},
	{"doc.b[1].c = :v", m{":v": 3}, "true"},
	{"l[2][0] = :v", m{":v": 2}, "true"},
	{"l[7] = :v", m{":v": 2}, "false"},
	{"nothing = :v", m{":v": nil}, "true"},
	{"ss <> :v", m{":v": set{"y", "x"}}, "false"},
	{"n <> :v", m{":v": "1"}, "true"},
	{"q <> :v", m{":v": 1}, "true"},
	{"q <> z", nil, "true"},
	{"n < :v", m{":v": 2}, "true"},
	{"t < :v", m{":v": "dog"}, "true"},
	{"b < :v", m{":v": []byte("dog")}, "true"},
	{"b < :v", m{":v": []byte{0xff}}, "true"},
	{"n < :v", m{":v": "2"}, "false"},
	{"n < n", nil, "first operand must be distinct"},
	{"q < :v", m{":v": 1}, "false"},
	{"q >= z", nil, "false"},
	{"n < :v", m{":v": list{1}}, "Incorrect operand type"},
	{":v < n", m{":v": true}, "Incorrect operand type"},
	{"l < :v", m{":v": 1}, "false"},
	{":v >= n", m{":v": 1}, "true"},
	{"n BETWEEN :v AND :v", m{":v": 1}, "true"},
	{"n between :v and two", m{":v": 0}, "true"},
	{"q BETWEEN :v AND :w", m{":v": 0, ":w": 2}, "false"},
	{"n BETWEEN :v AND :w", m{":v": "0", ":w": "2"}, "false"},
	{"n BETWEEN :v AND :w", m{":v": 2, ":w": 1}, "BETWEEN operator requires upper bound to be greater than or equal to lower bound"},
	{"n BETWEEN :v AND :w", m{":v": 2, ":w": "dog"}, "same data type"},
	{"n BETWEEN two AND :v", m{":v": 1}, "false"},
	{"n BETWEEN two AND :v", m{":v": "dog"}, "false"},
	{"n IN (:v, :w)", m{":v": "dog", ":w": 1}, "true"},
	{"q IN (:v)", m{":v": 1}, "false"},
	{"n IN ()", nil, "Syntax error"},
	{"n IN (" + repeat(":v%d", 99) + ")", valuesUpTo(99), "true"},
	{"n IN (" + repeat(":v%d", 101) + ")", valuesUpTo(101), "too many operands"},
	{"attribute_exists (n)", nil, "true"},
	{"attribute_exists(doc.b[1].c)", nil, "true"},
	{"attribute_exists(doc.b.c)", nil, "false"},
	{"attribute_exists(:v)", m{":v": 1}, "requires a document path"},
	{"attribute_not_exists(z)", nil, "true"},
	{"attribute_not_exists(l[1])", nil, "false"},
	{"attribute_exist(n)", nil, "Invalid function name"},
	{"Attribute_Exists(n)", nil, "Invalid function name"},
	{"flag", nil, "Syntax error"},
	{":v", m{":v": true}, "Syntax error"},
	{"NOT flag", nil, "Syntax error"},
	{"n = :v OR NOT :v", m{":v": 1}, "Syntax error"},
	{"attribute_type(n, :v)", m{":v": "N"}, "true"},
	{"attribute_type(nothing, :v)", m{":v": "NULL"}, "true"},
	{"attribute_type(ss, :v)", m{":v": "SS"}, "true"},
	{"attribute_type(n, :v)", m{":v": "S"}, "false"},
	{"attribute_type(q, :v)", m{":v": "S"}, "false"},
	{"attribute_type(:n, :v)", m{":n": 0, ":v": "N"}, "true"},
	{"attribute_type(n, :v)", m{":v": "DOG"}, "Invalid attribute type name found; type: DOG"},
	{"attribute_type(n, type)", nil, "type"},
	{"begins_with(t, :v)", m{":v": "ca"}, "true"},
	{"begins_with(b, :v)", m{":v": []byte("ca")}, "true"},
	{"begins_with(t, :v)", m{":v": "at"}, "false"},
	{"begins_with(t, :v)", m{":v": []byte("ca")}, "false"},
	{"begins_with(t, :v)", m{":v": 1}, "Incorrect operand type"},
	{"begins_with(t, n)", nil, "false"},
	{"begins_with(n, t)", nil, "false"},
	{"contains(t, :v)", m{":v": "at"}, "true"},
	{"contains(ss, :v)", m{":v": "x"}, "true"},
	{"contains(ns, :v)", m{":v": 2}, "true"},
	{"contains(l, :v)", m{":v": "x"}, "true"},
	{"contains(l, :v)", m{":v": list{2}}, "true"},
	{"contains(l, :v)", m{":v": 2}, "false"},
	{"contains(n, :v)", m{":v": 1}, "false"},
	{"contains(q, :v)", m{":v": 1}, "false"},
	{"contains(:v, t)", m{":v": "my cat"}, "true"},
	{"size(t) = :v", m{":v": 3}, "true"},
	{"size(doc) = :v", m{":v": 3}, "true"},
	{"size(l) > :v", m{":v": 2}, "true"},
	{"size(ss) = two", nil, "true"},
	{"size(n) = :v", m{":v": 1}, "false"},
	{"size(q) = :v", m{":v": 0}, "false"},
	{"size(t)", nil, "not allowed to be used this way"},
	{"n = :v AND t = :w", m{":v": 1, ":w": "dog"}, "false"},
	{"n = :v OR t = :w", m{":v": 1, ":w": "dog"}, "true"},
	{"NOT n = :v", m{":v": 2}, "true"},
	{"NOT q < :v", m{":v": 2}, "true"},
	{"n = :v OR n = :v AND n = :w", m{":v": 1, ":w": 2}, "true"},
	{"(n = :v OR n = :v) AND n = :w", m{":v": 1, ":w": 2}, "false"},
	{"NOT n = :v AND n = :v", m{":v": 2}, "false"},
	{"((n = :v))", m{":v": 1}, "redundant parentheses"},
	{"n != :v", m{":v": 1}, "Syntax error"},
	{"n = :v", nil, ":v"},
	{"#n = :v", m{":v": 1}, "#n"},
	{"#n = :v", m{"#n": "n", ":v": 1}, "true"},
	{"#n = :v", m{"#n": "doc.a", ":v": 1}, "false"},
	{"n = :v", m{"#n": "n", ":v": 1}, "unused in expressions: keys: {#n}"},
	{"", nil, "The expression can not be empty"},
	{"status = :v", m{":v": 1}, "reserved keyword"},
}

// repeat returns a list of n placeholders.
func repeat(form string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(form, i)
	}
	return strings.Join(all, ", ")
}

func valuesUpTo(n int) m {
	all := m{}
	for i := range n {
		all[fmt.Sprint(":v", i)] = i
	}
	return all
}

func TestConditionsAreThoseOfAWS(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	table := "items"
	key := m{"p": db.partition()}
	if err := db.put(table, with(key, stored)); err != nil {
		t.Fatal(err)
	}
	for _, c := range conditions {
		db.run(fmt.Sprintf("%.60s", fmt.Sprint(c.condition, c.parameters)), "", func() error {
			in := &dynamodb.PutItemInput{TableName: &table, Item: attributes(with(key, stored)), ConditionExpression: &c.condition}
			in.ExpressionAttributeNames, in.ExpressionAttributeValues = split(c.parameters)
			_, err := db.client.PutItem(t.Context(), in)
			if got := outcome(err); !strings.Contains(got, c.want) {
				return fmt.Errorf("want %s, got %s", c.want, got)
			}
			return nil
		})
	}
}

func TestAConditionOnNoItemSeesNoAttributes(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	table := "items"
	for condition, want := range map[string]string{
		"attribute_not_exists(p)": "true", "attribute_exists(p)": "false", "p <> :v": "true", "p = :v": "false", "NOT p = :v": "true",
	} {
		db.run(condition, "", func() error {
			in := &dynamodb.DeleteItemInput{TableName: &table, Key: attributes(m{"p": db.partition()}), ConditionExpression: &condition}
			if strings.Contains(condition, ":v") {
				in.ExpressionAttributeValues = attributes(m{":v": "x"})
			}
			_, err := db.client.DeleteItem(t.Context(), in)
			return same(want, outcome(err))
		})
	}
}
