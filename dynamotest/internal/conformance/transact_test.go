package conformance_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// action makes an action of a transaction on the item with a key.
type action func(key string) types.TransactWriteItem

func put(more m, condition string) action {
	return func(key string) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{
			TableName: aws.String("items"), Item: attributes(with(m{"p": key}, more)), ConditionExpression: optional(condition),
		}}
	}
}

func update(expression string, values m) action {
	return func(key string) types.TransactWriteItem {
		return types.TransactWriteItem{Update: &types.Update{
			TableName: aws.String("items"), Key: attributes(m{"p": key}), UpdateExpression: &expression,
			ExpressionAttributeValues: attributes(values),
		}}
	}
}

func remove(condition string) action {
	return func(key string) types.TransactWriteItem {
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: aws.String("items"), Key: attributes(m{"p": key}), ConditionExpression: optional(condition),
		}}
	}
}

func check(condition string) action {
	return func(key string) types.TransactWriteItem {
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: aws.String("items"), Key: attributes(m{"p": key}), ConditionExpression: optional(condition),
		}}
	}
}

// onOne makes an action on an item that other actions can have too.
func onOne(a action) action {
	return func(string) types.TransactWriteItem { return a("one") }
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

const (
	exists = "attribute_exists(p)"
	absent = "attribute_not_exists(p)"
)

// badKey is an action whose key has another type than the table's.
var badKey = put(m{"p": 7}, "")

// transactions are actions on items that do not exist. They want the codes of the cancellation
// reasons, a part of another error, or "ok".
var transactions = []struct {
	name    string
	actions []action
	want    string
	local   string
}{
	{"no condition", []action{put(m{"a": 1}, ""), put(nil, absent), check(absent), remove("")}, "ok", ""},
	{"false conditions are all reported", []action{put(nil, ""), put(nil, absent), check(exists), put(nil, exists)}, "None None ConditionalCheckFailed ConditionalCheckFailed", ""},
	{"a delete with a false condition", []action{remove(exists)}, "ConditionalCheckFailed", ""},
	{"a key of another type", []action{badKey}, "ValidationError", ""},
	{"only the first key of another type", []action{badKey, badKey, put(nil, "")}, "ValidationError None None", "it has one reason alone"},
	{"no condition is evaluated with a key of another type", []action{put(nil, exists), badKey, check(exists)}, "None ValidationError None", "it has one reason alone"},
	{"an update that the item does not allow", []action{put(nil, ""), update("SET a.b = :v", m{":v": 1})}, "None ValidationError", ""},
	{"a copy of nothing", []action{update("SET a = b", nil)}, "ValidationError", ""},
	{"REMOVE creates no item", []action{update("REMOVE a.b", nil)}, "ok", ""},
	{"two actions on an item", []action{onOne(put(nil, "")), onOne(remove(""))}, "multiple operations on one item", ""},
	{"a check and a write of an item", []action{put(nil, ""), onOne(check(absent)), onOne(put(nil, ""))}, "multiple operations on one item", ""},
	{"a name that is not defined", []action{put(nil, "attribute_exists(#x)")}, "#x", ""},
	{"a value that is not defined", []action{put(nil, "p = :x")}, ":x", ""},
	{"a wrong expression", []action{put(nil, "hello!")}, "Syntax error", ""},
	{"a value that is not used", []action{update("REMOVE a", m{":x": 1})}, "unused in expressions: keys: {:x}", ""},
	{"no action", nil, "ransactItems", ""},
	{"100 actions", repeated(put(nil, ""), 100), "ok", ""},
	{"101 actions", repeated(put(nil, ""), 101), "ransactItems", ""},
	{"3 MB", repeated(put(m{"a": strings.Repeat("x", 100_000)}, ""), 30), "ok", ""},
	{"5 MB", repeated(put(m{"a": strings.Repeat("x", 100_000)}, ""), 50), "size cannot exceed", ""},
}

func repeated(a action, n int) (all []action) {
	for range n {
		all = append(all, a)
	}
	return all
}

func TestTransactionsDoWhatAWSDoes(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	for _, c := range transactions {
		db.run(c.name, c.local, func() error {
			in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{}}
			for _, action := range c.actions {
				in.TransactItems = append(in.TransactItems, action(db.partition()))
			}
			_, err := db.client.TransactWriteItems(t.Context(), in)
			var cancelled *types.TransactionCanceledException
			switch {
			case err == nil:
				return same(c.want, "ok")
			case errors.As(err, &cancelled):
				return same(c.want, codes(cancelled))
			}
			return refused(err, c.want)
		})
	}
	db.run("a transaction that is refused writes nothing", "", func() error {
		got, err := db.get("items", m{"p": "one"})
		return firstOf(err, same("none", got))
	})
}

// codes returns the codes of the reasons. A reason has a message unless its code is None.
func codes(cancelled *types.TransactionCanceledException) string {
	var all []string
	for _, reason := range cancelled.CancellationReasons {
		code := aws.ToString(reason.Code)
		if (code == "None") != (reason.Message == nil) {
			code += fmt.Sprintf(" with message %q", aws.ToString(reason.Message))
		}
		all = append(all, code)
	}
	return strings.Join(all, " ")
}

func TestTransactionsOfReadsHaveTheLimitsOfAWS(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	gets := func(n int, projection string) *dynamodb.TransactGetItemsInput {
		in := &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{}}
		for range n {
			in.TransactItems = append(in.TransactItems, types.TransactGetItem{Get: &types.Get{
				TableName: aws.String("items"), Key: attributes(m{"p": db.partition()}), ProjectionExpression: optional(projection),
			}})
		}
		return in
	}
	twice := gets(2, "")
	twice.TransactItems[1] = twice.TransactItems[0]
	for _, c := range []struct {
		name string
		in   *dynamodb.TransactGetItemsInput
		err  string
	}{
		{"an item that is missing", gets(1, "a"), ""},
		{"100 items", gets(100, ""), ""},
		{"101 items", gets(101, ""), "ransactItems"},
		{"no items", gets(0, ""), "ransactItems"},
		{"a name that is not defined", gets(1, "#a"), "#a"},
		{"an item twice", twice, "multiple operations on one item"},
	} {
		db.run(c.name, "", func() error {
			out, err := db.client.TransactGetItems(t.Context(), c.in)
			if c.err != "" {
				return refused(err, c.err)
			}
			if err != nil {
				return err
			}
			for _, response := range out.Responses {
				if response.Item != nil {
					return fmt.Errorf("it returns %s", text(response.Item))
				}
			}
			return same(fmt.Sprint(len(c.in.TransactItems)), fmt.Sprint(len(out.Responses)))
		})
	}
}

func TestAFailedConditionReturnsTheItemIfAsked(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	if err := db.put("items", m{"p": "x", "a": 1}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key   string
		asked types.ReturnValuesOnConditionCheckFailure
		want  string
	}{
		{"x", types.ReturnValuesOnConditionCheckFailureAllOld, `{a:1 p:"x"}`},
		{"x", types.ReturnValuesOnConditionCheckFailureNone, "none"},
		{"y", types.ReturnValuesOnConditionCheckFailureAllOld, "none"},
		{"x", "ALL_NEW", "eturnValuesOnConditionCheckFailure"},
	} {
		db.run(fmt.Sprint(c.key, " ", c.asked), "", func() error {
			_, err := db.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
				TableName: aws.String("items"), Key: attributes(m{"p": c.key}), ReturnValuesOnConditionCheckFailure: c.asked,
				ConditionExpression: aws.String("a = :v"), ExpressionAttributeValues: attributes(m{":v": 2}),
			})
			var failed *types.ConditionalCheckFailedException
			if !errors.As(err, &failed) {
				return refused(err, c.want)
			}
			return same(c.want, text(failed.Item))
		})
	}
}
