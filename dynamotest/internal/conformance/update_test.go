package conformance_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	badPath = "The document path provided in the update expression is invalid for update"
	badType = "An operand in the update expression has an incorrect data type"
	unknown = "The provided expression refers to an attribute that does not exist in the item"
	overlap = "Two document paths overlap with each other"
	// created marks a case in which DynamoDB Local creates an item.
	created = "it creates the item"
)

// updateCase updates an item, which is nil if there is none. The parameters are names (#) and
// values (:). It wants the item after the update, or an error that leaves the item unchanged.
type updateCase struct {
	name       string
	item       m
	expression string
	parameters m
	want       m
	err        string
	local      string
}

var updates = []updateCase{
	{name: "REMOVE creates no item", expression: "REMOVE a", local: created},
	{name: "REMOVE of several attributes creates no item", expression: "REMOVE a, b", local: created},
	{name: "REMOVE of a part creates no item", expression: "REMOVE a.b", local: "it refuses the path"},
	{name: "REMOVE of an element creates no item", expression: "REMOVE a[0]", local: "it refuses the path"},
	{name: "DELETE creates no item", expression: "DELETE a :v", parameters: m{":v": set{"x"}}, local: created},
	{name: "SET creates an item", expression: "SET a = :v", parameters: m{":v": 1}, want: m{"a": 1}},
	{name: "SET and REMOVE create an item", expression: "SET a = :v REMOVE b", parameters: m{":v": 1}, want: m{"a": 1}},
	{name: "ADD of a number creates an item", expression: "ADD a :v", parameters: m{":v": 8}, want: m{"a": 8}},
	{name: "ADD of a set creates an item", expression: "ADD a :v", parameters: m{":v": set{"x"}}, want: m{"a": set{"x"}}},
	{name: "SET of a part needs an item", expression: "SET a.b = :v", parameters: m{":v": 1}, err: badPath},
	{name: "SET of an element needs an item", expression: "SET a[0] = :v", parameters: m{":v": 1}, err: badPath},
	{name: "a copy needs an item", expression: "SET a = b", err: unknown},

	{name: "an update keeps other attributes", item: m{"a": "x"}, expression: "SET b = :v", parameters: m{":v": 1}, want: m{"a": "x", "b": 1}},
	{name: "SET copies", item: m{"a": "x"}, expression: "SET b = a", want: m{"a": "x", "b": "x"}},
	{name: "a copy of nothing", item: m{"a": "x"}, expression: "SET b = c", err: unknown},
	{name: "an action does not see another", item: m{"a": 1}, expression: "SET x = :v, y = x", parameters: m{":v": 1}, err: unknown},
	{name: "SET copies what REMOVE removes", item: m{"a": 1}, expression: "REMOVE a SET b = a", want: m{"b": 1}},
	{name: "two attributes change places", item: m{"a": 1, "b": 2}, expression: "SET a = b, b = a", want: m{"a": 2, "b": 1}},
	{name: "REMOVE of the last attribute leaves the item", item: m{"a": 1}, expression: "REMOVE a", want: m{}},
	{name: "the name of a section in any case", item: m{}, expression: "sEt a=:v", parameters: m{":v": 1}, want: m{"a": 1}},
	{name: "an empty expression", item: m{}, expression: "", err: "The expression can not be empty"},
	{name: "a section twice", item: m{}, expression: "SET a = :v SET b = :v", parameters: m{":v": 1}, err: "can only be used once"},
	{name: "an unknown section", item: m{}, expression: "PUT a = :v", parameters: m{":v": 1}, err: "Syntax error"},
	{name: "a name that begins with _", item: m{}, expression: "SET _a = :v", parameters: m{":v": 1}, err: "Syntax error"},
	{name: "a name that begins with a digit", item: m{}, expression: "SET 1a = :v", parameters: m{":v": 1}, err: "Syntax error"},
	{name: "a placeholder that begins with a digit", item: m{}, expression: "SET #1 = :2", parameters: m{"#1": "a.b!", ":2": 1}, want: m{"a.b!": 1}},
	{name: "a value as target", item: m{}, expression: "SET :a = :b", parameters: m{":a": 1, ":b": 1}, err: "Syntax error"},
	{name: "a value that is not defined", item: m{}, expression: "SET a = :v", err: ":v"},
	{name: "a value that is not used", item: m{}, expression: "SET a = :v", parameters: m{":v": 1, ":w": 1}, err: "unused in expressions: keys: {:w}"},
	{name: "a name that is not defined", item: m{}, expression: "SET #a = :v", parameters: m{":v": 1}, err: "#a"},
	{name: "a name that is not used", item: m{}, expression: "SET a = :v", parameters: m{":v": 1, "#b": "b"}, err: "unused in expressions: keys: {#b}"},

	{name: "SET and REMOVE of one attribute", item: m{"a": 1}, expression: "SET a = :v REMOVE a", parameters: m{":v": 1}, err: overlap},
	{name: "two names of one attribute", item: m{}, expression: "SET #a = :v, #b = :v", parameters: m{"#a": "a", "#b": "a", ":v": 1}, err: overlap},
	{name: "an attribute and its part", item: m{}, expression: "SET a = :v, a.b.c = :v", parameters: m{":v": 1}, err: overlap},
	{name: "an element and its part", item: m{}, expression: "SET a[1][1] = :v, a[1] = :v", parameters: m{":v": 1}, err: overlap},
	{name: "a member and an element of one value", item: m{}, expression: "SET a.b = :v, a[1] = :v", parameters: m{":v": 1}, err: "conflict"},
	{
		name: "parts that do not overlap", item: m{"a": m{"x": 3, "y": 4, "c": m{}}, "b": m{"x": 1, "y": 2}},
		expression: "SET a.b = :v, a.c.d = :v, b.x = :v REMOVE a.x, b.y", parameters: m{":v": 9},
		want: m{"a": m{"y": 4, "b": 9, "c": m{"d": 9}}, "b": m{"x": 9}},
	},
	{name: "the key", item: m{}, expression: "SET p = :v", parameters: m{":v": "x"}, err: "This attribute is part of the key"},
	{name: "REMOVE of the key", item: m{}, expression: "REMOVE p", err: "This attribute is part of the key"},
	{name: "REMOVE of the key of no item", expression: "REMOVE p", err: "This attribute is part of the key"},

	{name: "a sum", item: m{"a": 2}, expression: "SET a = :v + a", parameters: m{":v": 3}, want: m{"a": 5}},
	{name: "a difference", item: m{"a": 2}, expression: "SET b = :v - a", parameters: m{":v": 7}, want: m{"a": 2, "b": 5}},
	{name: "a sum of three", item: m{}, expression: "SET a = :v + :v + :v", parameters: m{":v": 1}, err: "Syntax error"},
	{name: "a sum of texts", item: m{}, expression: "SET a = :v + :v", parameters: m{":v": "x"}, err: "Incorrect operand type"},
	{name: "a sum with a stored text", item: m{"a": "x"}, expression: "SET a = a + :v", parameters: m{":v": 1}, err: badType},
	{name: "a sum with nothing", item: m{}, expression: "SET a = a + :v", parameters: m{":v": 1}, err: unknown},
	{name: "list_append", item: m{"a": list{1}}, expression: "SET a = list_append(a, :v)", parameters: m{":v": list{2, "x"}}, want: m{"a": list{1, 2, "x"}}},
	{name: "list_append in front", item: m{"a": list{1}}, expression: "SET a = list_append(:v, a)", parameters: m{":v": list{2}}, want: m{"a": list{2, 1}}},
	{name: "list_append to no list", item: m{"a": 1}, expression: "SET a = list_append(a, :v)", parameters: m{":v": list{2}}, err: badType},
	{name: "list_append to nothing", item: m{}, expression: "SET a = list_append(a, :v)", parameters: m{":v": list{2}}, err: unknown},
	{name: "list_append of one", item: m{}, expression: "SET a = list_append(:v)", parameters: m{":v": list{2}}, err: "Incorrect number of operands"},
	{name: "a function in capitals", item: m{}, expression: "SET a = LIST_APPEND(:v, :v)", parameters: m{":v": list{2}}, err: "Invalid function name"},
	{name: "an unknown function", item: m{}, expression: "SET a = f1(b, c)", err: "Invalid function name; function: f1"},
	{name: "list_append in list_append", item: m{}, expression: "SET a = list_append(list_append(:v, :v), :v)", parameters: m{":v": list{2}}, err: "not allowed to be used this way"},
	{name: "if_not_exists of nothing", item: m{}, expression: "SET a = if_not_exists(a, :v)", parameters: m{":v": 2}, want: m{"a": 2}},
	{name: "if_not_exists of another attribute", item: m{"a": 1}, expression: "SET b = if_not_exists(a, :v)", parameters: m{":v": 2}, want: m{"a": 1, "b": 1}},
	{name: "if_not_exists in if_not_exists", item: m{"c": 1}, expression: "SET a = if_not_exists(a, if_not_exists(c, :v))", parameters: m{":v": 2}, want: m{"a": 1, "c": 1}},
	{name: "if_not_exists of a value", item: m{}, expression: "SET a = if_not_exists(:v, :v)", parameters: m{":v": 2}, err: "requires a document path"},
	{name: "if_not_exists in a sum", item: m{}, expression: "SET a = if_not_exists(a, :v) + :w", parameters: m{":v": 2, ":w": 3}, want: m{"a": 5}},
	{name: "a sum in if_not_exists", item: m{}, expression: "SET a = if_not_exists(a, :v + :v)", parameters: m{":v": 2}, err: "Syntax error"},
	{name: "if_not_exists in list_append", item: m{}, expression: "SET a = list_append(if_not_exists(a, :v), :w)", parameters: m{":v": list{}, ":w": list{1}}, want: m{"a": list{1}}},

	{name: "ADD to a number", item: m{"a": 3}, expression: "ADD a :v", parameters: m{":v": 4}, want: m{"a": 7}},
	{name: "ADD of a text", item: m{"a": 3}, expression: "ADD a :v", parameters: m{":v": "x"}, err: "Incorrect operand type"},
	{name: "ADD of a list", item: m{"a": list{1}}, expression: "ADD a :v", parameters: m{":v": list{1}}, err: "Incorrect operand type"},
	{name: "ADD to a text", item: m{"a": "x"}, expression: "ADD a :v", parameters: m{":v": 4}, err: badType},
	{name: "ADD of a set to a list", item: m{"a": list{1}}, expression: "ADD a :v", parameters: m{":v": numbers{"1"}}, err: badType},
	{name: "ADD of a set of another type", item: m{"a": set{"1"}}, expression: "ADD a :v", parameters: m{":v": numbers{"1"}}, err: badType},
	{name: "ADD to a set", item: m{"a": set{"x", "y"}}, expression: "ADD a :v", parameters: m{":v": set{"y", "z"}}, want: m{"a": set{"x", "y", "z"}}},
	{name: "DELETE from a set", item: m{"a": set{"x", "y"}}, expression: "DELETE a :v", parameters: m{":v": set{"y", "z"}}, want: m{"a": set{"x"}}},
	{name: "DELETE of all elements removes a set", item: m{"a": set{"x"}}, expression: "DELETE a :v", parameters: m{":v": set{"x"}}, want: m{}},
	{name: "DELETE from nothing", item: m{"b": 1}, expression: "DELETE a :v", parameters: m{":v": set{"x"}}, want: m{"b": 1}},
	{name: "DELETE of a text", item: m{"a": set{"x"}}, expression: "DELETE a :v", parameters: m{":v": "x"}, err: "Incorrect operand type"},
	{name: "DELETE of an empty set", item: m{"a": set{"x"}}, expression: "DELETE a :v", parameters: m{":v": set{}}, err: "empty"},
	{name: "SET to an empty set", item: m{}, expression: "SET a = :v", parameters: m{":v": set{}}, err: "empty"},
	{name: "SET to empty values", item: m{}, expression: "SET a = :l, b = :m, c = :s", parameters: m{":l": list{}, ":m": m{}, ":s": ""}, want: m{"a": list{}, "b": m{}, "c": ""}},

	{name: "SET of a member", item: m{"a": m{"b": 1}}, expression: "SET a.c = :v, a.b = :v", parameters: m{":v": 7}, want: m{"a": m{"b": 7, "c": 7}}},
	{name: "SET of an element", item: m{"a": list{1, 2}}, expression: "SET a[1] = :v", parameters: m{":v": 7}, want: m{"a": list{1, 7}}},
	{name: "elements behind the end are appended in order", item: m{"a": list{1}}, expression: "SET a[84] = :x, a[37] = :y", parameters: m{":x": 84, ":y": 37}, want: m{"a": list{1, 37, 84}}},
	{name: "an index is a number", item: m{"a": list{1}}, expression: "SET a[:v] = :v", parameters: m{":v": 0}, err: "Syntax error"},
	{name: "indexes are those before the update", item: m{"a": list{2, 3, 4, 5}}, expression: "REMOVE a[1] SET a[3] = :v", parameters: m{":v": 7}, want: m{"a": list{2, 4, 7}}},
	{name: "REMOVE of the only member leaves a map", item: m{"a": m{"b": 1}}, expression: "REMOVE a.b", want: m{"a": m{}}},
	{name: "REMOVE of the only element leaves a list", item: m{"a": list{1}}, expression: "REMOVE a[0]", want: m{"a": list{}}},
	{name: "REMOVE of what is missing", item: m{"a": m{"x": 3}, "b": list{"y"}}, expression: "REMOVE a.y, b[7], c", want: m{"a": m{"x": 3}, "b": list{"y"}}},
	{name: "REMOVE of a member of a text", item: m{"a": "x"}, expression: "REMOVE a.b", err: badPath},
	{name: "REMOVE of a member of nothing", item: m{"a": "x"}, expression: "REMOVE c.b", err: badPath},
	{name: "REMOVE of an element of nothing", item: m{"a": "x"}, expression: "REMOVE c[0]", err: badPath},
	{name: "SET of a member of a list", item: m{"a": list{}}, expression: "SET a.b = :v", parameters: m{":v": 1}, err: badPath},
	{name: "SET of an element of a text", item: m{"a": "x"}, expression: "SET a[0] = :v", parameters: m{":v": 1}, err: badPath},
}

func TestUpdatesDoWhatAWSDoes(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	table := "items"
	for _, c := range updates {
		db.run(c.name, c.local, func() error {
			key := m{"p": db.partition()}
			if c.item != nil {
				if err := db.put(table, with(key, c.item)); err != nil {
					return err
				}
			}
			in := &dynamodb.UpdateItemInput{TableName: &table, Key: attributes(key), UpdateExpression: &c.expression}
			in.ExpressionAttributeNames, in.ExpressionAttributeValues = split(c.parameters)
			_, err := db.client.UpdateItem(t.Context(), in)
			want := c.want
			if c.err != "" {
				err, want = refused(err, c.err), c.item
			}
			if err != nil {
				return err
			}
			got, err := db.get(table, key)
			if err != nil || want == nil {
				return firstOf(err, same("none", got))
			}
			return same(text(attributes(with(key, want))), got)
		})
	}
}

func firstOf(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// returnCase wants the attributes that an update returns.
type returnCase struct {
	name       string
	item       m
	expression string
	parameters m
	asked      types.ReturnValue
	want       string
	local      string
}

const whole = "it returns the whole attribute"

var returns = []returnCase{
	{"REMOVE of no item has no new attributes", nil, "REMOVE a", nil, types.ReturnValueAllNew, "none", created},
	{"a new item has no old attributes", nil, "SET a = :v", m{":v": 1}, types.ReturnValueAllOld, "none", ""},
	{"a new item has new attributes without its key", nil, "SET a = :v", m{":v": 1}, types.ReturnValueUpdatedNew, "{a:1}", ""},
	{"only overwritten attributes are old", m{"a": "x", "b": "y"}, "SET b = :v, c = :v", m{":v": 1}, types.ReturnValueUpdatedOld, `{b:"y"}`, ""},
	{"a removed attribute is old", m{"a": "x", "b": "y"}, "REMOVE b", nil, types.ReturnValueUpdatedOld, `{b:"y"}`, ""},
	{"a removed attribute is not new", m{"a": "x", "b": "y"}, "REMOVE b", nil, types.ReturnValueUpdatedNew, "none", ""},
	{"set attributes are new", m{"a": 1}, "SET a = a + :v, b = :v", m{":v": 1}, types.ReturnValueUpdatedNew, "{a:2 b:1}", ""},
	{"only the part is old", m{"a": m{"b": "x", "c": list{1, 2}}}, "SET a.c[1] = :v", m{":v": 7}, types.ReturnValueUpdatedOld, "{a:{c:[2]}}", whole},
	{"only the part is new", m{"a": m{"b": "x", "c": list{1, 2}}}, "SET a.c[1] = :v", m{":v": 7}, types.ReturnValueUpdatedNew, "{a:{c:[7]}}", whole},
	{"only parts that existed are old", m{"a": list{1, 2}}, "REMOVE a[1], a[3]", nil, types.ReturnValueUpdatedOld, "{a:[2]}", whole},
	{"a part that is added is not old", m{"a": m{}}, "SET a.x = :v", m{":v": 7}, types.ReturnValueUpdatedOld, "none", ""},
	{"an appended element is not new", m{"a": list{1}}, "SET a[100] = :v", m{":v": 7}, types.ReturnValueUpdatedNew, "none", ""},
	{"the next element is new after one is removed", m{"a": list{1, 2, 3}}, "REMOVE a[1]", nil, types.ReturnValueUpdatedNew, "{a:[3]}", whole},
	{"an unknown kind", m{}, "SET a = :v", m{":v": 1}, "none", "ValidationException", ""},
}

func TestReturnedAttributesAreThoseOfAWS(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	table := "items"
	for _, c := range returns {
		db.run(c.name, c.local, func() error {
			key := m{"p": db.partition()}
			if c.item != nil {
				if err := db.put(table, with(key, c.item)); err != nil {
					return err
				}
			}
			in := &dynamodb.UpdateItemInput{TableName: &table, Key: attributes(key), UpdateExpression: &c.expression, ReturnValues: c.asked}
			in.ExpressionAttributeNames, in.ExpressionAttributeValues = split(c.parameters)
			out, err := db.client.UpdateItem(t.Context(), in)
			if err != nil {
				return refused(err, c.want)
			}
			return same(c.want, text(out.Attributes))
		})
	}
}
