// Package apierror makes the errors of DynamoDB's API that the SDK has no type for.
package apierror

import (
	"fmt"

	"github.com/aws/smithy-go"
)

// Validation is a ValidationException: the request is wrong, and sending it again is of no use.
func Validation(format string, args ...any) error {
	return client("ValidationException", format, args...)
}

// Serialization is a SerializationException: the request is not what the protocol allows.
func Serialization(format string, args ...any) error {
	return client("SerializationException", format, args...)
}

// UnknownOperation is what an operation that does not exist, or is not supported, gets.
func UnknownOperation(format string, args ...any) error {
	return client("UnknownOperationException", format, args...)
}

// MissingAuthentication is what a request without a signature gets.
func MissingAuthentication(format string, args ...any) error {
	return client("MissingAuthenticationTokenException", format, args...)
}

func client(code, format string, args ...any) error {
	return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf(format, args...), Fault: smithy.FaultClient}
}
