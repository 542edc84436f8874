package projection

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/dynamo"
)

// ReadClient is the part of a *dynamodb.Client that a [Reader] uses.
type ReadClient interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

// DefaultMaxRead limits the cost of a page to 250 read units for rows of 1 KB.
const DefaultMaxRead = 2_000

// maxRequests limits the requests for a page, and so also what they read to about 10 MB.
const maxRequests = 10

// minFiltered is the number of rows that the first request for a page with filters reads.
const minFiltered = 100

// Reader reads the rows of a read model by their keys and indexes. It hides the attributes of
// [Rows], and rows that hold only a position. Client, Table and Decode are required. A Reader
// is safe for concurrent use. A copy with another Table.Name reads another generation.
type Reader[T any] struct {
	// Client is usually a *dynamodb.Client.
	Client ReadClient
	// Table is the table of the rows: that of writes of a projection, or RowTable.Table.
	Table Table
	// Decode returns a row as a T. A row of an index has the attributes that the index holds.
	Decode func(Row) (T, error)
	// Name identifies the table in page tokens. If the tables of generations have the same Name,
	// tokens of one are valid for the others. Default: the name of the table.
	Name string
	// MaxRead is the maximum number of rows that one call of Page reads, with those that do not
	// match its filters. Default: DefaultMaxRead.
	MaxRead int
}

// checked returns a valid reader with its defaults.
func (r Reader[T]) checked() (Reader[T], error) {
	if r.MaxRead == 0 {
		r.MaxRead = DefaultMaxRead
	}
	if r.Name == "" {
		r.Name = r.Table.Name
	}
	switch {
	case r.Client == nil:
		return r, errNoClient
	case r.Decode == nil:
		return r, &ConfigError{"Decode is nil: pass a function that decodes a row"}
	case r.MaxRead < 0:
		return r, &ConfigError{fmt.Sprintf("MaxRead is %d: use at least 1, or 0 for the default", r.MaxRead)}
	case isReserved(r.Table.PartitionKey) || isReserved(r.Table.SortKey):
		return r, errReservedKeys
	}
	return r, r.Table.validate()
}

// Get returns the row of a key, strongly consistent. Sort is the value of the sort key, if the
// table has one. It costs one read unit for each 4 KB of the row.
//
// Errors: [*ConfigError], [journal.ErrThrottled], [journal.ErrTableMissing], [journal.ErrAccess],
// [journal.ErrUnavailable], and those of Decode.
func (r Reader[T]) Get(ctx context.Context, partition string, sort ...string) (row T, found bool, err error) {
	if r, err = r.checked(); err != nil {
		return row, false, err
	}
	if !isKey(partition, maxPartition) || len(sort) > 0 && !isKey(sort[0], maxSort) {
		return row, false, nil // DynamoDB can hold no such row
	}
	in := &dynamodb.GetItemInput{TableName: &r.Table.Name, Key: r.Table.Key(partition, sort...), ConsistentRead: aws.Bool(true)}
	out, err := dynamo.Within(ctx, in, r.Client.GetItem, nil)
	if err != nil {
		return row, false, fmt.Errorf("get row: %w", dynamo.ExplainFor(err, r.Table.Name, "projection.CreateTable"))
	}
	if out.Item == nil || r.isEmpty(out.Item) {
		return row, false, nil
	}
	row, err = r.decode(out.Item)
	return row, err == nil, err
}

func isKey(value string, most int) bool { return 0 < len(value) && len(value) <= most }

// Page is a part of the rows of a query.
type Page[T any] struct {
	Rows []T // not nil
	// NextToken selects the next page. It is empty on the last page only: a page may have few rows,
	// or none, if the filters match few. It contains the key of a row, readable by clients.
	NextToken string
}

// Page returns some of the rows of a query. It reads until the page is full, or until it has read
// MaxRead rows or about 10 MB. In the second case the page is short, and its token continues after
// the rows that were read. An index is eventually consistent, so it may not show an event that the
// projection has just applied.
//
// Pages are not a snapshot: a row whose sort key changes between two pages may be on both of them,
// or on none.
//
// It costs half a read unit for each 4 KB of the rows that it reads, and reads one more row than it
// returns.
//
// Errors: [*QueryError], [ErrPageToken], [*IndexMissingError], and those of Get.
func (r Reader[T]) Page(ctx context.Context, q Query) (Page[T], error) {
	r, err := r.checked()
	if err != nil {
		return Page[T]{}, err
	}
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	if q.Limit < 1 || q.Limit > MaxLimit {
		return Page[T]{}, &QueryError{"Limit", fmt.Sprintf("is %d, not 1 to %d", q.Limit, MaxLimit)}
	}
	in, err := q.request(r.Table)
	if err != nil {
		return Page[T]{}, err
	}
	tokens := newPageTokens(r.Name, r.Table, q, in)
	if q.Token != "" {
		if in.ExclusiveStartKey, err = tokens.read(q.Token); err != nil {
			return Page[T]{}, err
		}
	}
	return r.page(ctx, q, in, tokens)
}

func (r Reader[T]) page(ctx context.Context, q Query, in *dynamodb.QueryInput, tokens pageTokens) (Page[T], error) {
	page := Page[T]{Rows: []T{}} // an empty list, not null, in JSON
	var last Row
	for requests, left := 0, r.MaxRead; ; requests++ {
		if len(page.Rows) == q.Limit || left <= 0 || requests == maxRequests {
			page.NextToken = tokens.after(in.ExclusiveStartKey)
			return page, nil
		}
		in.Limit = aws.Int32(int32(min(left, nextLimit(q, requests, len(page.Rows)))))
		out, err := r.send(ctx, q, in)
		if err != nil {
			if requests == 0 && q.Token != "" && dynamo.Code(err) == "ValidationException" && !errors.As(err, new(*IndexMissingError)) {
				err = fmt.Errorf("%w: %w", ErrPageToken, err)
			}
			return Page[T]{}, err
		}
		for _, item := range out.Items {
			if r.isEmpty(item) {
				continue
			}
			if len(page.Rows) == q.Limit {
				page.NextToken = tokens.after(last)
				return page, nil
			}
			if len(page.Rows) == q.Limit-1 {
				last = maps.Clone(item) // Decode may change the row
			}
			row, err := r.decode(item)
			if err != nil {
				return Page[T]{}, err
			}
			page.Rows = append(page.Rows, row)
		}
		if out.LastEvaluatedKey == nil {
			return page, nil
		}
		left -= int(out.ScannedCount)
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// nextLimit returns how many rows the next request reads. One row more than the page has shows that
// there is another page. With filters, each request reads twice as many as the one before.
func nextLimit(q Query, requests, has int) int {
	most := q.Limit - has + 1
	if len(q.Filters) > 0 {
		most = max(most, minFiltered<<requests)
	}
	return most
}

// All returns an iterator over all rows of a query, with as many requests as that takes. It does
// not use Limit and Token of the query. The iteration ends after an error.
//
// Costs and errors are as those of Page.
func (r Reader[T]) All(ctx context.Context, q Query) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		r, err := r.checked()
		var in *dynamodb.QueryInput
		if err == nil {
			in, err = q.request(r.Table)
		}
		if err != nil {
			yield(none, err)
			return
		}
		for {
			out, err := r.send(ctx, q, in)
			if err != nil {
				yield(none, err)
				return
			}
			for _, item := range slices.DeleteFunc(out.Items, r.isEmpty) {
				row, err := r.decode(item)
				if !yield(row, err) || err != nil {
					return
				}
			}
			if out.LastEvaluatedKey == nil {
				return
			}
			in.ExclusiveStartKey = out.LastEvaluatedKey
		}
	}
}

func (r Reader[T]) send(ctx context.Context, q Query, in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	out, err := dynamo.Within(ctx, in, r.Client.Query, nil)
	switch {
	case err == nil:
		return out, nil
	case q.Index != "" && isRefused(err, "does not have the specified index"):
		err = r.Table.indexMissing(q.Index, err)
	case q.Index != "" && isRefused(err, "backfilling global secondary index"):
		err = &IndexMissingError{Table: r.Table.Name, Index: q.Index, Err: err}
	default:
		err = dynamo.ExplainFor(err, r.Table.Name, "projection.CreateTable")
	}
	return nil, fmt.Errorf("query rows: %w", err)
}

// isRefused compares the text of DynamoDB's error, because it has no type or code of its own.
func isRefused(err error, text string) bool {
	return dynamo.Code(err) == "ValidationException" && strings.Contains(err.Error(), text)
}

// isEmpty reports whether an item of [Rows] holds only a position: no update of a reaction has
// written to it.
func (r Reader[T]) isEmpty(item map[string]types.AttributeValue) bool {
	if Row(item).Text(checkpoint.RowAttributes+"group") == "" {
		return false
	}
	for attribute := range item {
		if attribute != r.Table.PartitionKey && attribute != r.Table.SortKey && !isReserved(attribute) {
			return false
		}
	}
	return true
}

func (r Reader[T]) decode(item map[string]types.AttributeValue) (T, error) {
	maps.DeleteFunc(item, func(attribute string, _ types.AttributeValue) bool { return isReserved(attribute) })
	row, err := r.Decode(item)
	if err != nil {
		key := Row(item)
		err = fmt.Errorf("decode row %q %q of table %q: %w", key.Text(r.Table.PartitionKey), key.Text(r.Table.SortKey), r.Table.Name, err)
	}
	return row, err
}
