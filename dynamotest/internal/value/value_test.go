package value_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// ofEachType returns a value of each type, and nil.
func ofEachType() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"S": &s{Value: "1"}, "N": &n{Value: "1"}, "B": &b{Value: []byte("1")}, "NULL": &null{Value: true},
		"BOOL": &types.AttributeValueMemberBOOL{Value: true}, "L": &l{Value: []types.AttributeValue{&s{Value: "1"}, &s{Value: "2"}}},
		"M": &m{Value: value.Item{"a": &s{Value: "1"}}}, "SS": &ss{Value: []string{"1", "2"}},
		"NS": &ns{Value: []string{"1", "2"}}, "BS": &bs{Value: [][]byte{[]byte("1"), []byte("2")}}, "": nil,
	}
}

func TestTypeIsTheNameOnTheWire(t *testing.T) {
	t.Parallel()
	for name, v := range ofEachType() {
		assert.Equal(t, name, value.Type(v))
	}
}

func TestValuesEqualThoseOfTheirType(t *testing.T) {
	t.Parallel()
	for nameA, a := range ofEachType() {
		for nameB, b := range ofEachType() {
			assert.Equal(t, nameA == nameB, value.Equal(a, b), "%s and %s", nameA, nameB)
		}
	}
}

func TestSetsHaveNoOrderAndListsHave(t *testing.T) {
	t.Parallel()
	assert.True(t, value.Equal(&ss{Value: []string{"a", "b"}}, &ss{Value: []string{"b", "a"}}))
	assert.True(t, value.Equal(&ns{Value: []string{"1", "2"}}, &ns{Value: []string{"2", "1"}}))
	assert.True(t, value.Equal(&bs{Value: [][]byte{{1}, {2}}}, &bs{Value: [][]byte{{2}, {1}}}))
	assert.False(t, value.Equal(&ss{Value: []string{"a", "b"}}, &ss{Value: []string{"a"}}))
	assert.False(t, value.Equal(&ss{Value: []string{"a", "b"}}, &ss{Value: []string{"a", "c"}}))
	list := func(a, b string) *l { return &l{Value: []types.AttributeValue{&s{Value: a}, &s{Value: b}}} }
	assert.True(t, value.Equal(list("a", "b"), list("a", "b")))
	assert.False(t, value.Equal(list("a", "b"), list("b", "a")))
}

func TestItemsAreEqualByTheirAttributes(t *testing.T) {
	t.Parallel()
	assert.True(t, value.EqualItems(ofEachType(), ofEachType()))
	assert.False(t, value.EqualItems(value.Item{"a": &s{}}, value.Item{"b": &s{}}))
	assert.False(t, value.EqualItems(value.Item{"a": nil}, value.Item{"b": nil}))
	assert.False(t, value.EqualItems(value.Item{"a": &s{}}, value.Item{"a": &s{}, "b": &s{}}))
	assert.True(t, value.EqualItems(nil, value.Item{}))
}

func TestStringsNumbersAndBinariesHaveAnOrder(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]types.AttributeValue{
		{&s{Value: "B"}, &s{Value: "a"}},
		{&s{Value: "\uffee"}, &s{Value: "😀"}}, // by UTF-8, not by UTF-16
		{&n{Value: "9"}, &n{Value: "10"}},
		{&n{Value: "-10"}, &n{Value: "-9"}},
		{&b{Value: []byte{1}}, &b{Value: []byte{1, 0}}},
		{&b{Value: []byte{127}}, &b{Value: []byte{128}}},
	} {
		order, ok := value.Compare(pair[0], pair[1])
		assert.True(t, ok)
		assert.Equal(t, -1, order)
		order, _ = value.Compare(pair[1], pair[0])
		assert.Equal(t, 1, order)
		order, _ = value.Compare(pair[0], pair[0])
		assert.Zero(t, order)
	}
	for nameA, a := range ofEachType() {
		for nameB, b := range ofEachType() {
			_, ok := value.Compare(a, b)
			assert.Equal(t, nameA == nameB && (nameA == "S" || nameA == "N" || nameA == "B"), ok, "%s and %s", nameA, nameB)
		}
	}
}

// sizes are values and their sizes by the Developer Guide. DynamoDB Local has the same sizes.
var sizes = []struct {
	v    types.AttributeValue
	want int
}{
	{&s{}, 0},
	{&s{Value: "abc"}, 3},
	{&s{Value: "ä€😀"}, 2 + 3 + 4},
	{&b{Value: []byte{1, 2}}, 2},
	{&types.AttributeValueMemberBOOL{}, 1},
	{&null{Value: true}, 1},
	{&n{Value: "0"}, 1},
	{&n{Value: "12.5"}, 3},
	{&n{Value: "-12345"}, 5},
	{&l{}, 3},
	{&l{Value: []types.AttributeValue{&s{Value: "a"}, &s{Value: "b"}}}, 3 + 2*(1+1)},
	{&m{}, 3},
	{&m{Value: value.Item{"a": &s{Value: "a"}, "b": &s{Value: "b"}}}, 3 + 2*(1+1+1)},
	{&ss{Value: []string{"a", "bc"}}, 3},
	{&bs{Value: [][]byte{{1, 2}, {3}}}, 3},
	{&ns{Value: []string{"1", "22"}}, 4},
}

func TestSizesAreThoseOfTheDeveloperGuide(t *testing.T) {
	t.Parallel()
	for _, test := range sizes {
		assert.Equal(t, test.want, value.Size(test.v), "%s %+v", value.Type(test.v), test.v)
		assert.Equal(t, test.want+len("name"), value.ItemSize(value.Item{"name": test.v}))
	}
	assert.Zero(t, value.Size(nil))
	assert.Zero(t, value.ItemSize(nil))
}
