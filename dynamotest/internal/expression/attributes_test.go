package expression_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest/internal/expression"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

var placeholderCases = []struct {
	name       string
	expression string // empty for none
	names      map[string]string
	values     value.Item
	want       string
}{
	{"all are used", "#n = :v", map[string]string{"#n": "a"}, value.Item{":v": s("x")}, ""},
	{"used twice", "#n = :v OR #n = :v", map[string]string{"#n": "a"}, value.Item{":v": s("x")}, ""},
	{"digits and underscores", "#1 = :_", map[string]string{"#1": "a"}, value.Item{":_": s("x")}, ""},
	{"longest placeholders", "#" + strings.Repeat("a", 254) + " = :" + strings.Repeat("a", 254), map[string]string{"#" + strings.Repeat("a", 254): "a"}, value.Item{":" + strings.Repeat("a", 254): s("x")}, ""},
	{"longest name", "a = :v OR #n = :v", map[string]string{"#n": strings.Repeat("b", 65535)}, value.Item{":v": s("x")}, ""},
	{"no names", "a = :v", map[string]string{}, value.Item{":v": s("x")}, "ExpressionAttributeNames must not be empty"},
	{"no values", "a = :v", nil, value.Item{}, "ExpressionAttributeValues must not be empty"},
	{"name without #", "a = :v", map[string]string{"x": "a"}, value.Item{":v": s("x")}, `ExpressionAttributeNames contains invalid key: Syntax error; key: "x"`},
	{"name of # alone", "a = :v", map[string]string{"#": "a"}, value.Item{":v": s("x")}, `ExpressionAttributeNames contains invalid key: Syntax error; key: "#"`},
	{"name with a hyphen", "a = :v", map[string]string{"#a-b": "a"}, value.Item{":v": s("x")}, `ExpressionAttributeNames contains invalid key: Syntax error; key: "#a-b"`},
	{"name with a letter outside ASCII", "a = :v", map[string]string{"#é": "a"}, value.Item{":v": s("x")}, `ExpressionAttributeNames contains invalid key: Syntax error; key: "#é"`},
	{"name with space around", "a = :v", map[string]string{" #a": "a"}, value.Item{":v": s("x")}, "Value provided in ExpressionAttributeNames unused in expressions: keys: { #a}"},
	{"name with nothing", "a = :v", map[string]string{"": "a"}, value.Item{":v": s("x")}, "ExpressionAttributeNames contains invalid key: The expression attribute map contains an empty key;"},
	{"name for nothing", "a = :v", map[string]string{"#n": ""}, value.Item{":v": s("x")}, "ExpressionAttributeNames contains invalid value: Empty attribute name for key #n"},
	{"name too long", "a = :v", map[string]string{"#" + strings.Repeat("a", 255): "a"}, value.Item{":v": s("x")}, "ExpressionAttributeNames contains invalid key: The expression attribute map contains a key that is too long; size of key: 256"},
	{"name for one too long", "a = :v", map[string]string{"#n": strings.Repeat("a", 65536)}, value.Item{":v": s("x")}, "ExpressionAttributeNames contains invalid value: Attribute name is too large, must be less than 65536 bytes for key #n"},
	{"value without :", "a = :v", nil, value.Item{"v": s("x")}, `ExpressionAttributeValues contains invalid key: Syntax error; key: "v"`},
	{"value of : alone", "a = :v", nil, value.Item{":": s("x")}, `ExpressionAttributeValues contains invalid key: Syntax error; key: ":"`},
	{"value with a point", "a = :v", nil, value.Item{":v.": s("x")}, `ExpressionAttributeValues contains invalid key: Syntax error; key: ":v."`},
	{"value with nothing", "a = :v", nil, value.Item{"": s("x")}, "ExpressionAttributeValues contains invalid key: The expression attribute map contains an empty key;"},
	{"value too long", "a = :v", nil, value.Item{":" + strings.Repeat("a", 255): s("x")}, "ExpressionAttributeValues contains invalid key: The expression attribute map contains a key that is too long;"},
	{"name goes before value", "a x", map[string]string{"x": "a"}, value.Item{"v": s("x")}, `ExpressionAttributeNames contains invalid key: Syntax error; key: "x"`},
	{"placeholders go before the expression", "a x", nil, value.Item{"v": s("x")}, `ExpressionAttributeValues contains invalid key: Syntax error; key: "v"`},
	{"the expression goes before what is unused", "a = :w", map[string]string{"#n": "a"}, value.Item{":v": s("x")}, "Invalid ConditionExpression: An expression attribute value used in expression is not defined; attribute value: :w"},
	{"unused name", "a = :v", map[string]string{"#n": "a"}, value.Item{":v": s("x")}, "Value provided in ExpressionAttributeNames unused in expressions: keys: {#n}"},
	{"unused value", "a = :v", nil, value.Item{":v": s("x"), ":w": s("x")}, "Value provided in ExpressionAttributeValues unused in expressions: keys: {:w}"},
	{"unused name and value", "a = :v", map[string]string{"#n": "a"}, value.Item{":v": s("x"), ":w": s("x")}, "Value provided in ExpressionAttributeNames unused in expressions: keys: {#n}"},
	{"names without expression", "", map[string]string{"#n": "a"}, value.Item{":v": s("x")}, "ExpressionAttributeNames can only be specified when using expressions"},
	{"values without expression", "", nil, value.Item{":v": s("x")}, "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null"},
	{"nothing at all", "", nil, nil, ""},
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	for _, c := range placeholderCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, parseAll(c.expression, expression.NewAttributes(c.names, c.values)))
		})
	}
}

// parseAll handles a request with one expression, or none, and returns the error.
func parseAll(source string, a *expression.Attributes) string {
	steps := []func() error{
		a.Validate,
		func() error {
			_, err := expression.ParseCondition("ConditionExpression", source, a)
			return err
		},
		a.CheckUsed,
	}
	if source == "" {
		steps = []func() error{a.RefuseNames, func() error { return a.RefuseValues("ConditionExpression") }}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return message(err)
		}
	}
	return ""
}

func TestPlaceholdersOnDynamoDBLocal(t *testing.T) {
	t.Parallel()
	emulator := newLocal(t)
	for _, c := range placeholderCases {
		t.Run(c.name, func(t *testing.T) {
			in := &dynamodb.PutItemInput{
				TableName:                 aws.String("items"),
				Item:                      fixture,
				ExpressionAttributeNames:  c.names,
				ExpressionAttributeValues: c.values,
			}
			if c.expression != "" {
				in.ConditionExpression = aws.String(c.expression)
			}
			_, err := emulator.client.PutItem(t.Context(), in)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.Equal(t, c.want, message(err))
		})
	}
}

func TestExpressionsOfARequestShareTheirPlaceholders(t *testing.T) {
	t.Parallel()
	a := expression.NewAttributes(map[string]string{"#a": "a", "#b": "b"}, value.Item{":v": s("x"), ":w": s("x")})
	_, err := expression.ParseCondition("FilterExpression", "#a = :v", a)
	require.NoError(t, err)
	require.EqualError(t, a.CheckUsed(), "api error ValidationException: Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}")
	_, err = expression.ParseKeyCondition("#b = :w", a)
	require.NoError(t, err)
	assert.NoError(t, a.CheckUsed())
}

func TestMessagesNameTheExpressionsThatAreMissing(t *testing.T) {
	t.Parallel()
	a := expression.NewAttributes(nil, value.Item{":v": s("x")})
	assert.Equal(t, "ExpressionAttributeValues can only be specified when using expressions: FilterExpression and KeyConditionExpression are null",
		message(a.RefuseValues("FilterExpression", "KeyConditionExpression")))
	assert.NoError(t, a.RefuseNames())
}
