package value_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

type (
	s    = types.AttributeValueMemberS
	n    = types.AttributeValueMemberN
	b    = types.AttributeValueMemberB
	null = types.AttributeValueMemberNULL
	l    = types.AttributeValueMemberL
	m    = types.AttributeValueMemberM
	ss   = types.AttributeValueMemberSS
	ns   = types.AttributeValueMemberNS
	bs   = types.AttributeValueMemberBS
)

// normal are values and their stored forms.
var normal = []struct{ in, want types.AttributeValue }{
	{&s{}, &s{}},
	{&b{Value: []byte{}}, &b{Value: []byte{}}},
	{&types.AttributeValueMemberBOOL{}, &types.AttributeValueMemberBOOL{}},
	{&null{Value: true}, &null{Value: true}},
	{&n{Value: "0"}, &n{Value: "0"}},
	{&n{Value: "-0"}, &n{Value: "0"}},
	{&n{Value: "12"}, &n{Value: "12"}},
	{&n{Value: "-12"}, &n{Value: "-12"}},
	{&n{Value: "1e5"}, &n{Value: "100000"}},
	{&n{Value: "+007.50"}, &n{Value: "7.5"}},
	{&n{Value: ".5"}, &n{Value: "0.5"}},
	{&n{Value: "1e00000000000000000005"}, &n{Value: "100000"}},
	{&n{Value: "0e999"}, &n{Value: "0"}},
	{&n{Value: "1e-130"}, &n{Value: "0." + strings.Repeat("0", 129) + "1"}},
	{&n{Value: "9.9e125"}, &n{Value: "99" + strings.Repeat("0", 124)}},
	{&n{Value: strings.Repeat("9", 38) + "0"}, &n{Value: strings.Repeat("9", 38) + "0"}},
	{&ss{Value: []string{"b", "", "a", "ä", "B"}}, &ss{Value: []string{"", "B", "a", "b", "ä"}}},
	{&ns{Value: []string{"2", "1e1", "-1", "0.50"}}, &ns{Value: []string{"-1", "0.5", "2", "10"}}},
	{&ns{Value: []string{"-0"}}, &ns{Value: []string{"0"}}},
	{&bs{Value: [][]byte{{255}, {}, {1, 2}, {1}}}, &bs{Value: [][]byte{{}, {1}, {1, 2}, {255}}}},
	{&l{Value: []types.AttributeValue{}}, &l{Value: []types.AttributeValue{}}},
	{&m{Value: value.Item{}}, &m{Value: value.Item{}}},
	{
		&l{Value: []types.AttributeValue{&s{Value: "a"}, &n{Value: "1.0"}, &n{Value: "2.0"}}},
		&l{Value: []types.AttributeValue{&s{Value: "a"}, &n{Value: "1"}, &n{Value: "2"}}},
	},
	{
		&m{Value: value.Item{"a": &l{Value: []types.AttributeValue{&n{Value: "1.0"}}}, "b": &s{Value: "b"}}},
		&m{Value: value.Item{"a": &l{Value: []types.AttributeValue{&n{Value: "1"}}}, "b": &s{Value: "b"}}},
	},
	{nested(31, &ss{Value: []string{"a"}}), nested(31, &ss{Value: []string{"a"}})},
	{nested(30, &l{Value: []types.AttributeValue{}}), nested(30, &l{Value: []types.AttributeValue{}})},
	{&m{Value: value.Item{strings.Repeat("n", 65535): &null{Value: true}}}, &m{Value: value.Item{strings.Repeat("n", 65535): &null{Value: true}}}},
}

const (
	numeric = "The parameter cannot be converted to a numeric value"
	digits  = "Attempting to store more than 38 significant digits in a Number"
	tooDeep = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
)

// refused are invalid values and the service's messages.
var refused = []struct {
	in   types.AttributeValue
	want string
}{
	{&null{}, "One or more parameter values were invalid: Null attribute value types must have the value of true"},
	{&n{}, numeric},
	{&n{Value: "x"}, numeric + ": x"},
	{&n{Value: " 1"}, numeric + ":  1"},
	{&n{Value: "1e2147483648"}, numeric + ": 1e2147483648"},
	{&n{Value: strings.Repeat("1", 39)}, digits},
	{&n{Value: "1e126"}, "Number overflow. Attempting to store a number with magnitude larger than supported range"},
	{&n{Value: "1e-131"}, "Number underflow. Attempting to store a number with magnitude smaller than supported range"},
	{&ss{Value: []string{}}, "One or more parameter values were invalid: An string set  may not be empty"},
	{&ns{Value: []string{}}, "One or more parameter values were invalid: An number set  may not be empty"},
	{&bs{Value: [][]byte{}}, "One or more parameter values were invalid: Binary sets should not be empty"},
	{&ss{Value: []string{"b", "a", "b"}}, "One or more parameter values were invalid: Input collection [b, a, b] contains duplicates"},
	{&ns{Value: []string{"1", "1.0"}}, "Input collection contains duplicates"},
	{&ns{Value: []string{"0", "-0"}}, "Input collection contains duplicates"},
	{&ns{Value: []string{"1", "x"}}, numeric + ": x"},
	{&bs{Value: [][]byte{{1}, {2}, {1}}}, "One or more parameter values were invalid: Input collection of type BS contains duplicates."},
	{&m{Value: value.Item{"": &s{}}}, "Empty attribute name"},
	{&m{Value: value.Item{strings.Repeat("n", 65536): &s{}}}, "Attribute name is too large, must be less than 65536 bytes"},
	{&m{Value: value.Item{"a": &null{}}}, "One or more parameter values were invalid: Null attribute value types must have the value of true"},
	{&l{Value: []types.AttributeValue{&ss{}}}, "One or more parameter values were invalid: An string set  may not be empty"},
	{nested(32, &s{}), tooDeep},
	{nested(31, &l{Value: []types.AttributeValue{}}), tooDeep},
	{nested(31, &m{Value: value.Item{}}), tooDeep},
}

func TestNormalizeGivesWhatIsStored(t *testing.T) {
	t.Parallel()
	for _, test := range normal {
		got, err := value.Normalize(test.in)
		require.NoError(t, err, "%s %+v", value.Type(test.in), test.in)
		assert.Equal(t, test.want, got)

		again, err := value.Normalize(got)
		require.NoError(t, err)
		assert.Equal(t, got, again, "what is normal stays as it is")
	}
}

func TestNormalizeRefusesWhatTheServiceRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range slices.Concat(refused, []struct {
		in   types.AttributeValue
		want string
	}{
		{nil, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"},
		{&l{Value: []types.AttributeValue{nil}}, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"},
	}) {
		_, err := value.Normalize(test.in)
		var api smithy.APIError
		require.ErrorAs(t, err, &api, test.want)
		assert.Equal(t, "ValidationException", api.ErrorCode())
		assert.Equal(t, test.want, api.ErrorMessage())
	}
}

func TestNormalizeLeavesItsArgumentAlone(t *testing.T) {
	t.Parallel()
	made := func() value.Item {
		return value.Item{
			"n": &n{Value: "1.0"}, "s": &ss{Value: []string{"b", "a"}}, "b": &bs{Value: [][]byte{{2}, {1}}},
			"l": &l{Value: []types.AttributeValue{&n{Value: "1.0"}, &ns{Value: []string{"2", "1"}}}},
			"m": &m{Value: value.Item{"n": &n{Value: "1.0"}}},
		}
	}
	item := made()
	_, err := value.NormalizeItem(item)
	require.NoError(t, err)
	assert.Equal(t, made(), item)
}

func TestNormalizeItemGivesANormalItemItself(t *testing.T) {
	t.Parallel()
	item := value.Item{"k": &s{Value: "a"}, "n": &n{Value: "5"}, "m": &m{Value: value.Item{"a": &null{Value: true}}}}
	got, err := value.NormalizeItem(item)
	require.NoError(t, err)
	got["new"] = &s{}
	assert.Contains(t, item, "new", "the same map, not a copy")
}

func TestNormalizeItemChecksNamesAndDepth(t *testing.T) {
	t.Parallel()
	_, err := value.NormalizeItem(value.Item{"": &s{}})
	assert.ErrorContains(t, err, "Empty attribute name")
	_, err = value.NormalizeItem(value.Item{"a": nested(31, &s{})})
	assert.NoError(t, err)
	_, err = value.NormalizeItem(value.Item{"a": nested(32, &s{})})
	assert.ErrorContains(t, err, tooDeep)
	none, err := value.NormalizeItem(nil)
	assert.NoError(t, err)
	assert.Nil(t, none)
}

// nested returns a value inside of that many maps and lists.
func nested(levels int, v types.AttributeValue) types.AttributeValue {
	for i := range levels {
		if i%2 == 0 {
			v = &l{Value: []types.AttributeValue{v}}
		} else {
			v = &m{Value: value.Item{"a": v}}
		}
	}
	return v
}
