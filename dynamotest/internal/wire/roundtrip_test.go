package wire_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest/internal/wire"
)

// operations are all client operations that dynamotest may support one day, and some more.
var operations = []string{
	"BatchGetItem", "BatchWriteItem", "CreateTable", "DeleteItem", "DeleteTable", "DescribeContinuousBackups",
	"DescribeLimits", "DescribeTable", "DescribeTimeToLive", "ExecuteStatement", "GetItem", "ListTables",
	"ListTagsOfResource", "PutItem", "Query", "RestoreTableToPointInTime", "Scan", "TagResource", "TransactGetItems",
	"TransactWriteItems", "UntagResource", "UpdateContinuousBackups", "UpdateItem", "UpdateTable", "UpdateTimeToLive",
}

func TestTheSDKReadsBackEveryOutput(t *testing.T) {
	t.Parallel()
	for _, operation := range operations {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, 2))
			for range 50 {
				in, want := shapesOf(operation)
				fillRequired(in)
				fill(random, want.Elem(), 0)

				got, err := call(clientOf(http.StatusOK, wire.AppendTo(nil, want.Interface())), operation, in)

				require.NoError(t, err)
				reset(got)
				require.Equal(t, want.Interface(), got.Interface())
			}
		})
	}
}

func TestDecodeReadsBackEveryInputOfTheSDK(t *testing.T) {
	t.Parallel()
	for _, operation := range operations {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(3, 4))
			for range 50 {
				want, _ := shapesOf(operation)
				fill(random, want.Elem(), 0)
				stub := &stub{status: http.StatusOK, body: []byte("{}")}
				_, err := call(stub.client(), operation, want)
				require.NoError(t, err)

				got, _ := shapesOf(operation)
				require.NoError(t, wire.Decode(stub.sent, got.Interface()), string(stub.sent))

				require.Equal(t, want.Interface(), got.Interface(), string(stub.sent))
			}
		})
	}
}

func TestEmptyIsKeptApartFromAbsent(t *testing.T) {
	t.Parallel()
	body := `{"Item":{},"ExpressionAttributeValues":{":l":{"L":[]},":m":{"M":{}},":b":{"B":""},":s":{"S":""},":ss":{"SS":[]}}}`
	var in dynamodb.PutItemInput
	require.NoError(t, wire.Decode([]byte(body), &in))

	assert.Equal(t, dynamodb.PutItemInput{
		Item: map[string]types.AttributeValue{},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":l":  &types.AttributeValueMemberL{Value: []types.AttributeValue{}},
			":m":  &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}},
			":b":  &types.AttributeValueMemberB{Value: []byte{}},
			":s":  &types.AttributeValueMemberS{},
			":ss": &types.AttributeValueMemberSS{Value: []string{}},
		},
	}, in)
}

// stub answers every request in the same way and keeps the request.
type stub struct {
	status int
	body   []byte
	sent   []byte
}

func (s *stub) Do(r *http.Request) (*http.Response, error) {
	var err error
	if s.sent, err = io.ReadAll(r.Body); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: s.status,
		Header:     http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:       io.NopCloser(bytes.NewReader(s.body)),
		Request:    r,
	}, nil
}

func (s *stub) client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:           "eu-central-1",
		BaseEndpoint:     aws.String("http://dynamotest"),
		HTTPClient:       s,
		Credentials:      credentials.NewStaticCredentialsProvider("id", "secret", ""),
		RetryMaxAttempts: 1,

		DisableValidateResponseChecksum: true,
	})
}

func clientOf(status int, body []byte) *dynamodb.Client {
	return (&stub{status: status, body: body}).client()
}

// shapesOf returns the input and the output of an operation.
func shapesOf(operation string) (in, out reflect.Value) {
	method := reflect.ValueOf(&dynamodb.Client{}).MethodByName(operation).Type()
	return reflect.New(method.In(1).Elem()), reflect.New(method.Out(0).Elem())
}

func call(client *dynamodb.Client, operation string, in reflect.Value) (reflect.Value, error) {
	method := reflect.ValueOf(client).MethodByName(operation)
	out := method.Call([]reflect.Value{reflect.ValueOf(context.Background()), in})
	err, _ := out[1].Interface().(error)
	return out[0], err
}

// reset removes fields that JSON does not contain.
func reset(out reflect.Value) { out.Elem().FieldByName("ResultMetadata").SetZero() }

// fillRequired sets every pointer, list and map of an input, so that the SDK sends it.
func fillRequired(in reflect.Value) { fill(rand.New(rand.NewPCG(5, 6)), in.Elem(), 0) }

// fill sets all fields of v at random. The SDK refuses some inputs without a member, so no member
// is nil.
func fill(random *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(random, v.Elem(), depth)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			// Eighths of a second: the SDK loses a millisecond if a float is not exact.
			v.Set(reflect.ValueOf(time.UnixMilli(random.Int64N(3e10) * 125).UTC()))
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "ResultMetadata" && f.Name != "ErrorCodeOverride" {
				fill(random, v.Field(i), depth)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), random.IntN(3), 3))
		for i := range v.Len() {
			fill(random, v.Index(i), depth)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range random.IntN(3) {
			element := reflect.New(v.Type().Elem()).Elem()
			fill(random, element, depth)
			v.SetMapIndex(reflect.ValueOf(text(random)), element)
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(randomValue(random, depth)))
	case reflect.String:
		v.SetString(text(random) + "x") // an empty enum would be left out
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	case reflect.Int32:
		v.SetInt(int64(int32(random.Uint32())))
	case reflect.Int64:
		v.SetInt(int64(random.Uint64()))
	case reflect.Float64:
		v.SetFloat(random.NormFloat64() * 1000)
	default:
		panic(fmt.Sprintf("no random %s", v.Type()))
	}
}

func randomValue(random *rand.Rand, depth int) types.AttributeValue {
	members := []types.AttributeValue{
		&types.AttributeValueMemberS{}, &types.AttributeValueMemberN{}, &types.AttributeValueMemberB{},
		&types.AttributeValueMemberBOOL{}, &types.AttributeValueMemberNULL{}, &types.AttributeValueMemberSS{},
		&types.AttributeValueMemberNS{}, &types.AttributeValueMemberBS{}, &types.AttributeValueMemberL{},
		&types.AttributeValueMemberM{},
	}
	if depth > 3 {
		members = members[:len(members)-2]
	}
	v := members[random.IntN(len(members))]
	if b, ok := v.(*types.AttributeValueMemberB); ok {
		b.Value = []byte(text(random))
		return b
	}
	if bs, ok := v.(*types.AttributeValueMemberBS); ok {
		bs.Value = [][]byte{[]byte(text(random)), {}}
		return bs
	}
	fill(random, reflect.ValueOf(v).Elem(), depth+1)
	return v
}

// text returns a string with all characters that JSON escapes.
func text(random *rand.Rand) string {
	alphabet := []rune("ab \"\\/\n\t\x00\x1f\x7fäß€\u2028😀\ufffd")
	runes := make([]rune, random.IntN(6))
	for i := range runes {
		runes[i] = alphabet[random.IntN(len(alphabet))]
	}
	return string(runes)
}
