package classic

import (
	"context"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
)

// numberedItem is the row of an event, of a head (number 0) or of a redundant snapshot.
type numberedItem struct {
	number uint64
	item   table.Item
}

// numbered calls do for each page of the numbered rows of an aggregate. It reads strongly
// consistent from the table, because an index could miss rows. Attributes names the attributes to
// return; nil returns all.
//
// Rows of other aggregates lie between them. For example, the key of event 7 of order 42-1 begins
// like the keys of order 42. A Query is billed for rows that it filters out, too. So numbered reads
// only keys that continue with a digit. If a page ends among rows of another aggregate, the next
// page begins after them.
func (l *layout) numbered(ctx context.Context, name string, id aggregate.ID, attributes []string, do func([]numberedItem) error) error {
	a, prefix := l.Config.Attributes, id.String()+"-"
	query := &dynamodb.QueryInput{
		TableName:                &name,
		ConsistentRead:           aws.Bool(true),
		KeyConditionExpression:   aws.String("#pk = :pk AND #sk BETWEEN :first AND :last"),
		ExpressionAttributeNames: table.AttributeNames("#pk", a.PartitionKey, "#sk", a.SortKey),
		ExpressionAttributeValues: table.Item{
			":pk": table.StringValue(l.partitionKey(id)), ":first": table.StringValue(prefix + "0"), ":last": table.StringValue(prefix + afterDigits),
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
		page, err := l.Client.Query(ctx, query)
		if err != nil {
			return dynamo.Explain(err, name)
		}
		var own []numberedItem
		for _, it := range page.Items {
			// The key holds the number even if the attribute is damaged.
			_, sort := l.KeysOf(it)
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
		if _, sort := l.KeysOf(page.LastEvaluatedKey); strings.HasPrefix(sort, prefix) {
			query.ExclusiveStartKey[a.SortKey] = table.StringValue(prefix + behindOthers(sort[len(prefix):]))
		}
	}
}

const (
	beforeDigits = "/"          // the character before 0
	afterDigits  = ":"          // the character after 9
	afterAll     = "\U0010FFFF" // the last character
)

// behindOthers returns the place from which numbers of the aggregate can follow, after a page that
// ended at last. Digits followed by other characters are not a number of the aggregate. The next
// number has more digits, or it sorts after every key that begins with these digits. A number with
// more digits sorts after a hyphen and before a letter.
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
