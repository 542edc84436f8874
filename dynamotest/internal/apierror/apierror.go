// Package apierror makes errors of DynamoDB's API for which the SDK has no type.
package apierror

import (
	"fmt"

	"github.com/aws/smithy-go"
)

// Validation returns a ValidationException: the request is wrong, and repeating it does not help.
func Validation(format string, args ...any) error {
	return client("ValidationException", format, args...)
}

// Serialization returns a SerializationException: the protocol does not allow the request.
func Serialization(format string, args ...any) error {
	return client("SerializationException", format, args...)
}

// TooLarge returns the error for a request that is too large for the protocol.
func TooLarge(format string, args ...any) error {
	return client("RequestEntityTooLargeException", format, args...)
}

// UnknownOperation returns the error for an operation that does not exist or is not supported.
func UnknownOperation(format string, args ...any) error {
	return client("UnknownOperationException", format, args...)
}

// MissingAuthentication returns the error for a request without a signature.
func MissingAuthentication(format string, args ...any) error {
	return client("MissingAuthenticationTokenException", format, args...)
}

func client(code, format string, args ...any) error {
	return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf(format, args...), Fault: smithy.FaultClient}
}
