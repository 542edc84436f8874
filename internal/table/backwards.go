package table

import (
	"context"
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/rows"
)

// Backwards reads up to limit entries of a partition of the tail, beginning with the last one.
func Backwards[T any](ctx context.Context, s *Table, input *dynamodb.QueryInput, limit int, of func(rows.Row) T) (entries []T, err error) {
	input.ScanIndexForward = aws.Bool(false)
	for {
		input.Limit = aws.Int32(int32(min(limit-len(entries), math.MaxInt32)))
		page, err := rows.Query(ctx, s.Source, input, of)
		if err != nil {
			return nil, err
		}
		entries = append(entries, page.Items...)
		if input.ExclusiveStartKey = page.LastKey; page.LastKey == nil || len(entries) >= limit {
			return entries, nil
		}
	}
}
