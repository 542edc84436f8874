package wire_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest/internal/wire"
)

func TestDecodeRefusesWhatTheProtocolDoesNotAllow(t *testing.T) {
	t.Parallel()
	const malformed = "Unexpected token received from parser"
	for body, message := range map[string]string{
		``:                              malformed,
		`null`:                          malformed,
		`[]`:                            malformed,
		`{`:                             malformed,
		`{"Limit":`:                     malformed,
		`{"Limit":1,}`:                  malformed,
		`{,"Limit":1}`:                  malformed,
		`{"Limit":1} x`:                 malformed,
		`{"Limit":01}`:                  malformed,
		`{"Limit":1.}`:                  malformed,
		`{"Limit":-}`:                   malformed,
		`{"Limit":nul}`:                 malformed,
		`{'Limit':1}`:                   malformed,
		`{"Limit" 1}`:                   malformed,
		`{"TableName":"a` + "\n" + `"}`: malformed,
		`{"TableName":"a\x"}`:           malformed,
		`{"TableName":"\u12g4"}`:        malformed,
		"{\"TableName\":\"\xff\"}":      malformed,
		`{"TableName":"a`:               malformed,
		`{"Foo":{"a":[1,}}`:             malformed,

		`{"TableName":12}`:                         "NUMBER_VALUE cannot be converted to String",
		`{"TableName":true}`:                       "TRUE_VALUE cannot be converted to String",
		`{"TableName":false}`:                      "FALSE_VALUE cannot be converted to String",
		`{"TableName":{}}`:                         "Start of structure or map found where not expected.",
		`{"TableName":[]}`:                         "Start of list found where not expected",
		`{"Select":1}`:                             "NUMBER_VALUE cannot be converted to String",
		`{"Limit":"5"}`:                            "STRING_VALUE cannot be converted to Integer",
		`{"Limit":5.5}`:                            "NUMBER_VALUE cannot be converted to Integer",
		`{"Limit":99999999999}`:                    "NUMBER_VALUE cannot be converted to Integer",
		`{"Limit":1e999}`:                          "NUMBER_VALUE cannot be converted to Integer",
		`{"ConsistentRead":"true"}`:                "STRING_VALUE cannot be converted to Boolean",
		`{"AttributesToGet":"x"}`:                  "Unexpected field type",
		`{"AttributesToGet":{}}`:                   "Start of structure or map found where not expected.",
		`{"AttributesToGet":[1]}`:                  "NUMBER_VALUE cannot be converted to String",
		`{"ExclusiveStartKey":[]}`:                 "Start of list found where not expected",
		`{"ExclusiveStartKey":"k"}`:                "Unexpected field type",
		`{"ExclusiveStartKey":{"k":"v"}}`:          "Unexpected field type",
		`{"ExclusiveStartKey":{"k":{"N":1}}}`:      "NUMBER_VALUE cannot be converted to String",
		`{"ExclusiveStartKey":{"k":{"B":1}}}`:      "only base-64-encoded strings are convertible to bytes",
		`{"ExclusiveStartKey":{"k":{"B":"YQ"}}}`:   "Base64 encoded length is expected a multiple of 4 bytes but found: 2",
		`{"ExclusiveStartKey":{"k":{"BOOL":"x"}}}`: "STRING_VALUE cannot be converted to Boolean",
		`{"ExclusiveStartKey":{"k":{"L":{}}}}`:     "Start of structure or map found where not expected.",
		`{"ExclusiveStartKey":{"k":{"M":[]}}}`:     "Start of list found where not expected",
		`{"ExclusiveStartKey":{"k":{"SS":[1]}}}`:   "NUMBER_VALUE cannot be converted to String",
		`{"ExpressionAttributeNames":{"#a":1}}`:    "NUMBER_VALUE cannot be converted to String",
		`{"ExpressionAttributeNames":[]}`:          "Start of list found where not expected",
		// DynamoDB reports the error of the protocol before the unknown parameter.
		`{"Foo":1,"ExclusiveStartKey":{"k":{"S":true}}}`: "TRUE_VALUE cannot be converted to String",
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			var api smithy.APIError
			require.ErrorAs(t, wire.Decode([]byte(body), &dynamodb.ScanInput{}), &api)
			assert.Equal(t, "SerializationException", api.ErrorCode())
			assert.Equal(t, message, api.ErrorMessage())
		})
	}
}

func TestDecodeRefusesBase64ThatIsNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"@@@@", "Y Q=", "YR==", "YQ=a", `YQ==\n\n\n\n`, `Y\nQ==\n\n\n`} {
		var api smithy.APIError
		err := wire.Decode([]byte(`{"Item":{"k":{"B":"`+text+`"}}}`), &dynamodb.PutItemInput{})
		require.ErrorAs(t, err, &api, text)
		assert.Equal(t, "SerializationException", api.ErrorCode(), text)
	}
}

func TestDecodeRefusesWhatIsWellFormedButInvalid(t *testing.T) {
	t.Parallel()
	const several = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
	for body, message := range map[string]string{
		`{"Foo":{"a":[1,{}]},"TableName":"t"}`:             "dynamotest does not support the parameter Foo of PutItemInput",
		`{"tableName":"t"}`:                                "dynamotest does not support the parameter tableName of PutItemInput",
		`{"ResultMetadata":{}}`:                            "dynamotest does not support the parameter ResultMetadata of PutItemInput",
		`{"Expected":{"a":{"Exist":true}}}`:                "dynamotest does not support the parameter Exist of ExpectedAttributeValue",
		`{"Item":{"a":{"X":"b"}}}`:                         "dynamotest does not support the parameter X of AttributeValue",
		`{"Item":{"a":{"S":"b","N":"1"}}}`:                 several,
		`{"Item":{"a":{"L":[{"BOOL":true,"NULL":true}]}}}`: several,
		`{"Item":{"a":{"SS":[null]}}}`:                     "One or more parameter values were invalid: An string set may not have a null string as a member",
		`{"Item":{"a":` + strings.Repeat(`{"L":[`, 1e6): "Nesting Levels have exceeded supported limits: " +
			"Attributes in the item have nested levels beyond supported limit",
		`{"Foo":` + strings.Repeat(`[`, 1e6): "Nesting Levels have exceeded supported limits: " +
			"Attributes in the item have nested levels beyond supported limit",
	} {
		t.Run(body[:min(len(body), 50)], func(t *testing.T) {
			t.Parallel()
			var api smithy.APIError
			require.ErrorAs(t, wire.Decode([]byte(body), &dynamodb.PutItemInput{}), &api)
			assert.Equal(t, "ValidationException", api.ErrorCode())
			assert.Equal(t, message, api.ErrorMessage())
		})
	}
}

func TestDecodeTakesNullAsAbsent(t *testing.T) {
	t.Parallel()
	body := `{"TableName":null,"ReturnValues":null,"ExpressionAttributeNames":null,` +
		`"Item":{"empty":{},"null":null,"unset":{"S":null},"set":{"S":"a","N":null},"list":{"L":[null,{}]}}}`
	var in dynamodb.PutItemInput
	require.NoError(t, wire.Decode([]byte(body), &in))

	assert.Equal(t, dynamodb.PutItemInput{Item: map[string]types.AttributeValue{
		"empty": nil,
		"null":  nil,
		"unset": nil,
		"set":   &types.AttributeValueMemberS{Value: "a"},
		"list":  &types.AttributeValueMemberL{Value: []types.AttributeValue{nil, nil}},
	}}, in)
}

func TestDecodeTakesTheLastOfEqualNames(t *testing.T) {
	t.Parallel()
	body := `{"TableName":"a","TableName":"b","Item":{"a":{"S":"x"}},"Item":{"k":{"S":"a","S":"b"},"k":{"S":"c"}}}`
	var in dynamodb.PutItemInput
	require.NoError(t, wire.Decode([]byte(body), &in))

	assert.Equal(t, dynamodb.PutItemInput{
		TableName: aws.String("b"),
		Item:      map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: "c"}},
	}, in)
}

func TestDecodeUnescapesStrings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`\"\\\/\b\f\n\r\t`: "\"\\/\b\f\n\r\t",
		`a\u00e4\u00DFz`:   "aäßz",
		`\ud83d\ude00`:     "😀",
		`\ud83dx`:          "\ufffdx", // half of a pair
		`\ude00\ud83d`:     "\ufffd\ufffd",
		`\ud83d\u0041`:     "\ufffdA",
		`äß€😀`:             "äß€😀",
	} {
		var in dynamodb.DescribeTableInput
		require.NoError(t, wire.Decode([]byte(` { "TableName" : "`+text+"\"\n}\t"), &in))
		assert.Equal(t, want, *in.TableName)
	}
}

func TestDecodeKeepsNothingOfTheBody(t *testing.T) {
	t.Parallel()
	body := []byte(`{"TableName":"t","Item":{"k":{"S":"abc"},"b":{"B":"YWJj"}}}`)
	var in dynamodb.PutItemInput
	require.NoError(t, wire.Decode(body, &in))
	for i := range body {
		body[i] = 'x'
	}

	assert.Equal(t, dynamodb.PutItemInput{TableName: aws.String("t"), Item: map[string]types.AttributeValue{
		"k": &types.AttributeValueMemberS{Value: "abc"},
		"b": &types.AttributeValueMemberB{Value: []byte("abc")},
	}}, in)
}

func TestDecodeTakesIntegersWithAnExponent(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"5", "5.0", "5e0", "50e-1"} {
		var in dynamodb.ScanInput
		require.NoError(t, wire.Decode([]byte(`{"Limit":`+number+`}`), &in))
		assert.Equal(t, int32(5), *in.Limit)
	}
}
