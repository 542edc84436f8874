package wire_test

import (
	"net/http"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest/internal/wire"
)

// FuzzDecode compares the decoder with the SDK. The SDK sends a decoded input in another body. The
// decoder must decode that body to the same input.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{"TableName":"ttt","Item":{"k":{"S":"\u00e4\ud83d\ude00"},"l":{"L":[{"N":"1"},{"M":{"a":{"B":"YQ=="}}}]}}}`,
		`{"Item":{"k":{"SS":["a"]},"n":{"NS":[]},"b":{"BS":["","YWI="]},"t":{"BOOL":true},"x":{"NULL":false}}}`,
		`{"TableName":"ttt","Limit":5e0,"ConsistentRead":true,"ExpressionAttributeNames":{"#a":"b"},"Select":null}`,
		`{"TransactItems":[{"Put":{"Item":{}}},{"Update":{"Key":{"k":{"S":"a"}}}}],"ClientRequestToken":"t"}`,
		`{"RequestItems":{"ttt":[{"PutRequest":{"Item":{"k":{"S":"a"}}}}]}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, operation := range []string{"PutItem", "Query", "UpdateItem", "TransactWriteItems", "BatchWriteItem", "CreateTable"} {
			in, _ := shapesOf(operation)
			if wire.Decode(body, in.Interface()) != nil || hasNil(in) {
				continue // the SDK does not send nil members
			}
			stub := &stub{status: http.StatusOK, body: []byte("{}")}
			if _, err := call(stub.client(), operation, in); err != nil {
				continue // the SDK misses a parameter
			}
			again, _ := shapesOf(operation)
			require.NoError(t, wire.Decode(stub.sent, again.Interface()), string(stub.sent))
			require.Equal(t, in.Interface(), again.Interface(), string(stub.sent))
		}
	})
}

// hasNil reports whether a list or map has a nil attribute value.
func hasNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && hasNil(v.Elem())
	case reflect.Interface:
		return v.IsNil() || hasNil(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); (f.Kind() != reflect.Interface || !f.IsNil()) && hasNil(f) {
				return true
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if hasNil(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if hasNil(v.MapIndex(key)) {
				return true
			}
		}
	default:
	}
	return false
}
