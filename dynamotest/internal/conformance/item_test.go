package conformance_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	overflow  = "Number overflow"
	underflow = "Number underflow"
	digits    = "significant digits"
)

// stores has numbers with the notation in which they are returned, or a part of an error.
var stores = []struct{ number, want string }{
	{"0", "0"},
	{"-0", "0"},
	{"007", "7"},
	{"+3", "3"},
	{".5", "0.5"},
	{"1.50", "1.5"},
	{"1e3", "1000"},
	{"-17.4E37", "-174" + strings.Repeat("0", 36)},
	{"100", "100"},
	{"0.1e126", "1" + strings.Repeat("0", 125)},
	{"1e-130", "0." + strings.Repeat("0", 129) + "1"},
	{"3.1415926535897932384626433832795028841", "3.1415926535897932384626433832795028841"},
	{"9.9999999e125", "99999999" + strings.Repeat("0", 118)},
	{"1e126", overflow},
	{"-11e125", overflow},
	{"1e-131", underflow},
	{"0.9e-130", underflow},
	{"3.14159265358979323846264338327950288419", digits},
	{"314159265358979323846264338327950288419e30", digits},
	{"NaN", "numeric"},
	{"Infinity", "numeric"},
	{"dog", "numeric"},
	{" 1", "numeric"},
	{"1 ", "numeric"},
	{"", "numeric"},
	{"1.0e100000000", overflow},
}

func TestNumbersAreThoseOfAWS(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	for _, c := range stores {
		db.run("the number "+c.number, "", func() error {
			key := m{"p": db.partition()}
			if err := db.put("items", with(key, m{"a": number(c.number)})); err != nil {
				return refused(err, c.want)
			}
			out, err := db.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("items"), Key: attributes(key)})
			if err != nil {
				return err
			}
			return same(c.want, textOf(out.Item["a"]))
		})
	}
	for _, notation := range []string{"1000", "1e3", "1E+3", "1000.0", "001000", "+1000"} {
		db.run("the key "+notation, "", func() error {
			if err := db.put("sorted", m{"p": "key", "s": number(notation)}); err != nil {
				return err
			}
			out, err := db.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("sorted")})
			if err != nil {
				return err
			}
			return same("1000", valuesOf(out.Items, "s"))
		})
	}
}

func TestSumsAreExactOrRefused(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	for _, c := range []struct{ a, b, want, local string }{
		{"1", "10000000000000000000000", "10000000000000000000001", ""},
		{"0.1", "0.2", "0.3", ""},
		{"9e125", "9e124", "99" + strings.Repeat("0", 124), ""},
		{"9e125", "9e125", overflow, ""},
		{"1e50", "1", "ValidationException", ""},
		{"1e-130", "-1e-130", "0", "it returns 0.000..."},
	} {
		db.run(c.a+" and "+c.b, c.local, func() error {
			out, err := db.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
				TableName: aws.String("items"), Key: attributes(m{"p": db.partition()}), UpdateExpression: aws.String("SET a = :a + :b"),
				ExpressionAttributeValues: attributes(m{":a": number(c.a), ":b": number(c.b)}), ReturnValues: types.ReturnValueUpdatedNew,
			})
			if err != nil {
				return refused(err, c.want)
			}
			return same(c.want, textOf(out.Attributes["a"]))
		})
	}
}

// puts are items of the table "sorted", each with a part of the error of a put, empty if there is
// none.
var puts = []struct {
	name string
	item m
	err  string
}{
	{"the largest item", m{"p": "x", "s": 1, "a": strings.Repeat("x", 400<<10-6)}, ""},
	{"an item that is too large", m{"p": "x", "s": 1, "a": strings.Repeat("x", 400<<10-5)}, "Item size has exceeded the maximum allowed size"},
	{"the longest partition key", m{"p": strings.Repeat("x", 2048), "s": 1}, ""},
	{"a partition key that is too long", m{"p": strings.Repeat("x", 2049), "s": 1}, "2048"},
	{"an empty partition key", m{"p": "", "s": 1}, "empty string value"},
	{"no partition key", m{"s": 1}, "Missing the key p in the item"},
	{"no sort key", m{"p": "x"}, "Missing the key s in the item"},
	{"a key of another type", m{"p": 1, "s": 1}, "Type mismatch for key p expected: S actual: N"},
	{"an empty set", m{"p": "x", "s": 1, "a": set{}}, "An string set  may not be empty"},
	{"a set with an element twice", m{"p": "x", "s": 1, "a": set{"x", "x"}}, "duplicates"},
	{"a set with a number twice", m{"p": "x", "s": 1, "a": numbers{"1", "1.0"}}, "duplicates"},
	{"a set with an empty element", m{"p": "x", "s": 1, "a": set{""}}, ""},
	{"empty values", m{"p": "x", "s": 1, "a": "", "b": []byte{}, "c": list{}, "d": m{}}, ""},
	{"a name that is empty", m{"p": "x", "s": 1, "": "x"}, "ValidationException"},
	{"the deepest item", m{"p": "x", "s": 1, "a": nested(31)}, ""},
	{"an item that is too deep", m{"p": "x", "s": 1, "a": nested(32)}, "Nesting Levels have exceeded supported limits"},
}

// nested returns lists in lists, with a number in the innermost.
func nested(levels int) any {
	var v any = 1
	for range levels {
		v = list{v}
	}
	return v
}

func TestItemsHaveTheLimitsOfAWS(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	for _, c := range puts {
		db.run(c.name, "", func() error {
			err := db.put("sorted", c.item)
			if c.err == "" {
				return err
			}
			return refused(err, c.err)
		})
	}
}

func TestKeysMatchTheSchema(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	for name, key := range map[string]m{
		"no sort key": {"p": "x"}, "another attribute": {"p": "x", "a": 1}, "one more": {"p": "x", "s": 1, "a": 1}, "another type": {"p": "x", "s": "1"},
	} {
		db.run(name, "", func() error {
			_, err := db.get("sorted", key)
			return refused(err, "The provided key element does not match the schema")
		})
	}
}

func TestBatchesHaveTheLimitsOfAWS(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	put := func(p string) types.WriteRequest {
		return types.WriteRequest{PutRequest: &types.PutRequest{Item: attributes(m{"p": p})}}
	}
	remove := func(p string) types.WriteRequest {
		return types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: attributes(m{"p": p})}}
	}
	many := func(n int) (all []types.WriteRequest) {
		for range n {
			all = append(all, put(db.partition()))
		}
		return all
	}
	for _, c := range []struct {
		name   string
		writes []types.WriteRequest
		err    string
	}{
		{"25 writes", many(25), ""},
		{"26 writes", many(26), "ValidationException"},
		{"no writes", nil, "ValidationException"},
		{"an item twice", []types.WriteRequest{put("x"), put("x")}, "Provided list of item keys contains duplicates"},
		{"an item that is put and deleted", []types.WriteRequest{put("x"), remove("x")}, "Provided list of item keys contains duplicates"},
		{"an item of another type among others", []types.WriteRequest{put("y"), {PutRequest: &types.PutRequest{Item: attributes(m{"p": 1})}}}, "ValidationException"},
		{"what is missing is deleted", []types.WriteRequest{remove("z")}, ""},
	} {
		db.run(c.name, "", func() error {
			_, err := db.client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"items": c.writes}})
			if c.err == "" {
				return err
			}
			return refused(err, c.err)
		})
	}
	db.run("a batch that is refused writes nothing", "", func() error {
		got, err := db.get("items", m{"p": "y"})
		return firstOf(err, same("none", got))
	})
}
