package projection

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// maxWrites is the maximum number of writes for one event: DynamoDB's limit of 100 actions in a
// transaction, minus one for the position.
const maxWrites = 99

// ConfigError reports a projection that cannot work. Reason says why.
type ConfigError struct{ Reason string }

func (e *ConfigError) Error() string { return "projection: " + e.Reason }

// IndexMissingError reports that a table lacks an index, or that DynamoDB is still building it. It
// is a [journal.ErrTableMissing]. Programs can use the table meanwhile, except the index.
type IndexMissingError struct {
	Table, Index string // their names
	// Add is the request that adds the index. DynamoDB then builds the index from the items of the
	// table, and [CreateTable] waits for it for up to ten minutes. DynamoDB adds one index at a
	// time. If Add is nil, DynamoDB is building the index.
	Add *dynamodb.UpdateTableInput
	Err error // the cause
}

func (e *IndexMissingError) Error() string {
	if e.Add == nil {
		return fmt.Sprintf("table %q has an index %q that DynamoDB is still building: try again later: %v", e.Table, e.Index, e.Err)
	}
	return fmt.Sprintf("table %q has no index %q: send the request IndexMissingError.Add with UpdateTable of the SDK, and call CreateTable again; "+
		"or build another generation of the read model in new tables: %v", e.Table, e.Index, e.Err)
}

// Unwrap returns journal.ErrTableMissing and the cause.
func (e *IndexMissingError) Unwrap() []error { return []error{journal.ErrTableMissing, e.Err} }

// QueryError reports a [Query] that cannot work: its Field, and the Reason. No request was made.
type QueryError struct{ Field, Reason string }

func (e *QueryError) Error() string { return "query: " + e.Field + " " + e.Reason }

// ErrPageToken reports a page token that does not belong to the query, or that was damaged.
var ErrPageToken = errors.New("invalid page token: send it as it was returned, with the same query, or begin at the first page")

// ConditionError reports that the condition of a write that is not idempotent is false. Nothing was
// written.
type ConditionError struct {
	Aggregate aggregate.ID // the aggregate of the event
	Number    uint64       // the sequence number of the event
	EventType string       // the type of the event
	Table     string       // the table of the write
	Write     int          // index in the result of the reaction
}

func (e *ConditionError) Error() string {
	return fmt.Sprintf("event %d of %s (%s): the condition of write %d, on table %q, is false: "+
		"correct the read model or the reaction, or mark the write Idempotent if there is nothing to do then",
		e.Number, e.Aggregate, e.EventType, e.Write, e.Table)
}

// TooManyWritesError reports more than 99 writes, the maximum for one transaction with the
// position. Nothing was written.
type TooManyWritesError struct {
	Aggregate aggregate.ID // the aggregate of the event
	Number    uint64       // the sequence number of the event
	Count     int          // how many writes the reaction returned
}

func (e *TooManyWritesError) Error() string {
	return fmt.Sprintf("event %d of %s: %d writes, one transaction can have %d and the position: combine them into fewer items",
		e.Number, e.Aggregate, e.Count, maxWrites)
}

// ItemTooLargeError reports an item of the read model that would exceed DynamoDB's 400 KB. Nothing
// was written.
type ItemTooLargeError struct {
	Aggregate aggregate.ID // the aggregate of the event
	Number    uint64       // the sequence number of the event
	EventType string       // the type of the event
	Table     string       // empty if DynamoDB does not report it
	Err       error        // the error of DynamoDB
}

func (e *ItemTooLargeError) Error() string {
	return fmt.Sprintf("event %d of %s (%s): an item of table %q would exceed 400 KB: spread it over several, "+
		"or, if it records too many source aggregates, use Update in place of IdempotentUpdate: %v",
		e.Number, e.Aggregate, e.EventType, e.Table, e.Err)
}

func (e *ItemTooLargeError) Unwrap() error { return e.Err }

const tooLarge = "maximum allowed size"

// isTooLarge reports whether a request failed because of the size of an item.
func isTooLarge(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && strings.Contains(api.ErrorMessage(), "Item size") && strings.Contains(api.ErrorMessage(), tooLarge)
}

// explain converts an error of DynamoDB to an error of this package. Reasons are the cancellation
// reasons of the writes, if there are any.
func explain(err error, r *journal.Record, writes []Write, reasons []types.CancellationReason) error {
	for i, reason := range reasons {
		if strings.Contains(aws.ToString(reason.Message), tooLarge) {
			return &ItemTooLargeError{Aggregate: r.Aggregate, Number: r.Number, EventType: r.EventType, Table: writes[i].table(), Err: err}
		}
	}
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &missing):
		var tables []string
		for _, w := range writes {
			tables = append(tables, w.table())
		}
		slices.Sort(tables)
		return fmt.Errorf("%w: the checkpoint table of the journal, or a table of the writes, %q: %w", journal.ErrTableMissing, slices.Compact(tables), err)
	case len(reasons) == 0 && isTooLarge(err):
		return &ItemTooLargeError{Aggregate: r.Aggregate, Number: r.Number, EventType: r.EventType, Err: err}
	}
	return err
}
