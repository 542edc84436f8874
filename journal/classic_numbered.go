package journal

import (
	"context"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/storage"
)

// numberedItem is an event, a head (number 0) or a redundant snapshot.
type numberedItem struct {
	number uint64
	item   item
}

// numbered returns the rows of an aggregate that have a number page by page, strongly consistent:
// no index would do, for it could leave something behind. Attributes are those to return, none for
// all.
//
// Rows of other aggregates lie among them, as the key of order 42-1's event 7 begins like that of
// order 42. A Query reads what it leaves out, too. So it reads only keys that go on with a digit,
// and where a page ends among the rows of others, it goes on behind them.
func (l *classic) numbered(ctx context.Context, table string, id aggregate.ID, attributes []string, do func([]numberedItem) error) error {
	a, prefix := l.config.Attributes, id.String()+"-"
	query := &dynamodb.QueryInput{
		TableName:                &table,
		ConsistentRead:           aws.Bool(true),
		KeyConditionExpression:   aws.String("#pk = :pk AND #sk BETWEEN :first AND :last"),
		ExpressionAttributeNames: attributeNames("#pk", a.PartitionKey, "#sk", a.SortKey),
		ExpressionAttributeValues: item{
			":pk": stringValue(l.partitionKey(id)), ":first": stringValue(prefix + "0"), ":last": stringValue(prefix + afterDigits),
		},
	}
	var projection []string
	for i, name := range attributes {
		alias := "#a" + strconv.Itoa(i)
		query.ExpressionAttributeNames[alias] = name
		projection = append(projection, alias)
	}
	if len(projection) > 0 {
		query.ProjectionExpression = aws.String(strings.Join(projection, ", "))
	}
	for {
		page, err := l.client.Query(ctx, query)
		if err != nil {
			return dynamo.Explain(err, table)
		}
		var own []numberedItem
		for _, it := range page.Items {
			// The key has the number also of an item whose attribute is damaged.
			_, sort := l.keysOf(it)
			if n, err := strconv.ParseUint(strings.TrimPrefix(sort, prefix), 10, 64); err == nil && sort == storage.SortKey(id, n) {
				own = append(own, numberedItem{n, it})
			}
		}
		if err := do(own); err != nil {
			return err
		}
		if page.LastEvaluatedKey == nil {
			return nil
		}
		query.ExclusiveStartKey = page.LastEvaluatedKey
		if _, sort := l.keysOf(page.LastEvaluatedKey); strings.HasPrefix(sort, prefix) {
			query.ExclusiveStartKey[a.SortKey] = stringValue(prefix + behindOthers(sort[len(prefix):]))
		}
	}
}

const (
	beforeDigits = "/"          // the character before 0
	afterDigits  = ":"          // the one after 9
	afterAll     = "\U0010FFFF" // the last one
)

// behindOthers returns from where on there can be a number again, given the end of a page. Digits
// with something else behind them are no number of the aggregate's. The next number has more
// digits, which sort behind a hyphen and before a letter, or sorts behind all that begins with
// these.
func behindOthers(last string) string {
	digits := len(last) - len(strings.TrimLeft(last, "0123456789"))
	switch {
	case digits == len(last):
		return last
	case last[digits] < '0':
		return max(last, last[:digits]+beforeDigits)
	default:
		return max(last, last[:digits]+afterAll)
	}
}
