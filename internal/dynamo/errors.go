package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Package journal exports these errors.
var (
	ErrThrottled    = errors.New("throttled")
	ErrContended    = errors.New("other transactions on the same items")
	ErrUnavailable  = errors.New("DynamoDB unavailable")
	ErrTableMissing = errors.New("table or index missing")
	ErrAccess       = errors.New("access to DynamoDB denied")
)

// MismatchError reports a table that was made with other settings. Package journal exports it as
// DescriptorMismatchError.
type MismatchError struct {
	Table                string
	Field, Stored, Given string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("table %q was made with %s %s, the config says %s: correct the config, or use another table",
		e.Table, e.Field, e.Stored, e.Given)
}

// IndexMissingError is the [ErrTableMissing] of a table that lacks an index. Keys and Projected
// describe the index.
type IndexMissingError struct{ Table, Index, Keys, Projected string }

func (e *IndexMissingError) Error() string {
	return fmt.Sprintf("%v: table %q has no index %q: add it with keys %s, projecting %s, while the table is in use",
		ErrTableMissing, e.Table, e.Index, e.Keys, e.Projected)
}

// Unwrap returns ErrTableMissing.
func (e *IndexMissingError) Unwrap() error { return ErrTableMissing }

// TableMissingError is the [ErrTableMissing] of a request. What names the table, and says whether
// it only lacks an index. Hint is advice for a program.
type TableMissingError struct {
	What, Hint string
	Cause      error // of the SDK
}

func (e *TableMissingError) Error() string {
	return fmt.Sprintf("%v: %s (%s): %v", ErrTableMissing, e.What, e.Hint, e.Cause)
}

// Unwrap returns ErrTableMissing and the cause.
func (e *TableMissingError) Unwrap() []error { return []error{ErrTableMissing, e.Cause} }

// Explain wraps err with the matching sentinel, such as [ErrTableMissing], and names the table of a
// journal. The error of the SDK stays in the chain.
func Explain(err error, table string) error { return ExplainFor(err, table, "journal.Create") }

// ExplainFor does the same as [Explain] for a table that the function named creator creates. If the
// table lacks an index, the creator does not add it, but reports the index and its keys.
func ExplainFor(err error, table, creator string) error {
	return ExplainAny(err, []string{table}, creator)
}

// ExplainAny does the same as [ExplainFor] for an error that may be about any of several tables.
func ExplainAny(err error, tables []string, creator string) error {
	if err == nil {
		return nil
	}
	var missing *types.ResourceNotFoundException
	table := anyOf(tables)
	switch {
	case errors.As(err, &missing):
		return &TableMissingError{table, creator + " creates it", err}
	case isIndexMissing(err):
		return &TableMissingError{table + " lacks an index", creator + " reports which one to add, and its keys", err}
	case IsAccess(err):
		return fmt.Errorf("%w: check the credentials, the region and the permissions on table %s: %w", ErrAccess, table, err)
	case IsThrottle(err):
		return fmt.Errorf("%w: DynamoDB has no capacity left for table %s: try again later, or raise the capacity of the table. "+
			"If it is not used up, a single partition is at its limit (docs/operations/scaling.md): %w", ErrThrottled, table, err)
	case IsContended(err):
		return fmt.Errorf("%w: table %s: try again, or use fewer concurrent writers: %w", ErrContended, table, err)
	case IsUnavailable(err):
		return fmt.Errorf("%w: table %s: check region, endpoint and network, or try again later: %w", ErrUnavailable, table, err)
	default:
		return err
	}
}

// anyOf returns the names of tables for a message, such as "a" or "b".
func anyOf(tables []string) string {
	quoted := make([]string, len(tables))
	for i, table := range tables {
		quoted[i] = strconv.Quote(table)
	}
	return strings.Join(quoted, " or ")
}

// isIndexMissing compares the text of DynamoDB's error, because it has no type or code of its own.
func isIndexMissing(err error) bool {
	return Code(err) == "ValidationException" && strings.Contains(err.Error(), "does not have the specified index")
}

// IsAccess reports whether credentials are missing or wrong, or lack a permission.
func IsAccess(err error) bool {
	switch Code(err) {
	case "AccessDeniedException", "AccessDenied", "UnrecognizedClientException", "MissingAuthenticationTokenException",
		"MissingAuthenticationToken", "InvalidSignatureException", "IncompleteSignatureException", "ExpiredTokenException",
		"InvalidClientTokenId", "NotAuthorized", "OptInRequired", "UnauthorizedException":
		return true
	}
	return isWithoutCredentials(err) && !IsContext(err) && !isPassing(err)
}

// isWithoutCredentials reports whether a request could not be signed, and so was not sent. The SDK
// has no type for that, so only the text of the error shows it.
func isWithoutCredentials(err error) bool {
	var operation *smithy.OperationError
	return errors.As(err, &operation) && strings.Contains(operation.Err.Error(), "get credentials: ")
}

// isPassing reports whether the service for credentials did not reply, or failed. The SDK asks the
// service of EC2 last. Outside of EC2 that service does not exist, so its error means that no
// credentials are configured.
func isPassing(err error) bool {
	if strings.Contains(err.Error(), "no EC2 IMDS role found") {
		return false
	}
	var send *smithyhttp.RequestSendError
	var response *smithyhttp.ResponseError
	return isDial(err) || IsThrottle(err) || errors.As(err, &send) ||
		errors.As(err, &response) && response.HTTPStatusCode() >= http.StatusInternalServerError
}

func isDial(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}

// IsUnreachable reports whether no connection was made, to DynamoDB or for credentials. Nothing was
// sent, and another attempt may succeed.
func IsUnreachable(err error) bool {
	if isWithoutCredentials(err) {
		return isPassing(err)
	}
	return isDial(err)
}

// IsUnsent reports whether a request never left this process, so that it cannot have had an effect.
func IsUnsent(err error) bool {
	if isDial(err) || isWithoutCredentials(err) {
		return true
	}
	var operation *smithy.OperationError
	var send *smithyhttp.RequestSendError
	var response *smithyhttp.ResponseError
	return errors.As(err, &operation) && !errors.As(err, &send) && !errors.As(err, &response)
}

// IsThrottle reports whether DynamoDB refused a request because of missing capacity.
func IsThrottle(err error) bool {
	switch Code(err) {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "Throttling", "RequestLimitExceeded",
		"TooManyRequestsException", "LimitExceededException":
		return true
	}
	return isCanceledFor(err, throttledCodes...)
}

// IsContended reports whether DynamoDB refused because of another transaction on the same item.
func IsContended(err error) bool {
	return Code(err) == "TransactionConflictException" || isCanceledFor(err, contendedCodes...)
}

func isCanceledFor(err error, codes ...string) bool { return len(actionsOf(err, codes)) > 0 }

// actionsOf returns the indexes of the actions because of which a transaction was canceled with one
// of the codes.
func actionsOf(err error, codes []string) (actions []int) {
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		return nil
	}
	for i, r := range canceled.CancellationReasons {
		if slices.Contains(codes, aws.ToString(r.Code)) {
			actions = append(actions, i)
		}
	}
	return actions
}

// PassingActions returns the indexes of the actions because of which DynamoDB throttled a
// transaction, or else those that met another transaction. It returns none for other errors, or if
// DynamoDB did not name the actions.
func PassingActions(err error) []int {
	if throttled := actionsOf(err, throttledCodes); len(throttled) > 0 {
		return throttled
	}
	return actionsOf(err, contendedCodes)
}

var (
	throttledCodes = []string{"ThrottlingError", "ProvisionedThroughputExceeded"}
	contendedCodes = []string{"TransactionConflict"}
)

// IsUnavailable reports whether DynamoDB could not be reached, did not reply, or failed. The
// request may have taken effect.
func IsUnavailable(err error) bool {
	var send *smithyhttp.RequestSendError
	var response *smithyhttp.ResponseError
	return !IsContext(err) && (IsUnreachable(err) || errors.Is(err, ErrNoReply) || errors.As(err, &send) ||
		errors.As(err, &response) && response.HTTPStatusCode() >= http.StatusInternalServerError)
}

// IsTransient reports whether another attempt may succeed without any change.
func IsTransient(err error) bool { return IsThrottle(err) || IsContended(err) || IsUnavailable(err) }

// Code returns the error code in a reply of DynamoDB, and "" for any other error.
func Code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// IsContext reports whether an error means that a context ended.
func IsContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
