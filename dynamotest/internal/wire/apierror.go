package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/aws/smithy-go"
)

// namespace is the namespace of DynamoDB's own errors.
const namespace = "com.amazonaws.dynamodb.v20120810#"

// namespaces are the namespaces of errors of the framework below DynamoDB.
var namespaces = map[string]string{
	"ValidationException":            "com.amazon.coral.validate#",
	"ThrottlingException":            "com.amazon.coral.availability#",
	"AccessDeniedException":          "com.amazon.coral.service#",
	"IncompleteSignatureException":   "com.amazon.coral.service#",
	"InternalFailure":                "com.amazon.coral.service#",
	"MissingAuthenticationToken":     "com.amazon.coral.service#",
	"ExpiredTokenException":          "com.amazon.coral.service#",
	"SerializationException":         "com.amazon.coral.service#",
	"ServiceUnavailable":             "com.amazon.coral.availability#",
	"ServiceUnavailableException":    "com.amazon.coral.availability#",
	"UnknownOperationException":      "com.amazon.coral.service#",
	"UnrecognizedClientException":    "com.amazon.coral.service#",
	"RequestEntityTooLargeException": "com.amazon.coral.service#",
}

// EncodeError returns the status and the body of an error reply. An error that is neither an SDK
// type nor another smithy.APIError becomes DynamoDB's InternalServerError.
func EncodeError(err error) (status int, body []byte) {
	var api smithy.APIError
	if !errors.As(err, &api) {
		api = &smithy.GenericAPIError{Code: "InternalServerError", Message: err.Error(), Fault: smithy.FaultServer}
	}
	code := api.ErrorCode()
	prefix, ok := namespaces[code]
	if !ok {
		prefix = namespace
	}
	body = append(body, `{"__type":`...)
	body = appendString(body, prefix+code)
	if v := reflect.ValueOf(api); isModelled(v) {
		members := appendStructure(nil, v.Elem())[len("{"):]
		if string(members) != "}" {
			body = append(body, ',')
		}
		return statusOf(api), append(body, members...)
	}
	body = append(body, `,"message":`...)
	body = appendString(body, api.ErrorMessage())
	return statusOf(api), append(body, '}')
}

// isModelled reports whether an error is an SDK type, which may have more fields than a message.
func isModelled(v reflect.Value) bool {
	return v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct && v.Elem().FieldByName("ErrorCodeOverride").IsValid()
}

func statusOf(err smithy.APIError) int {
	switch {
	case err.ErrorCode() == "RequestEntityTooLargeException":
		return http.StatusRequestEntityTooLarge
	case err.ErrorCode() == "ServiceUnavailable" || err.ErrorCode() == "ServiceUnavailableException":
		return http.StatusServiceUnavailable
	case err.ErrorFault() == smithy.FaultServer || err.ErrorCode() == "InternalServerError":
		return http.StatusInternalServerError
	default:
		return http.StatusBadRequest
	}
}

// DecodeError returns the error in the body of a reply, with its code and its message.
func DecodeError(body []byte) error {
	var reply struct {
		Type    string `json:"__type"`
		Message string `json:"message"` // in upper or lower case
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		return fmt.Errorf("dynamotest: the reply is not an error of DynamoDB: %w", err)
	}
	return &smithy.GenericAPIError{Code: reply.Type[strings.LastIndex(reply.Type, "#")+1:], Message: reply.Message}
}
