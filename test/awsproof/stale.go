package awsproof

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var ages = []time.Duration{
	0, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	200 * time.Millisecond, 500 * time.Millisecond, time.Second,
}

// reads counts reads of the table and of the index after writes of an age.
type reads struct{ table, staleTable, index, staleIndex int }

// stale overwrites items, and reads each write after all ages: the table eventually consistently,
// and the index. The age is the time from the reply to the write until the read is sent.
func (p *proof) stale(ctx context.Context) (string, error) {
	const writers = 8
	table, err := p.table(ctx, "stale")
	if err != nil {
		return "", err
	}
	var mu sync.Mutex
	counts := make([]reads, len(ages))
	count := func(age time.Duration, add func(*reads)) {
		mu.Lock()
		defer mu.Unlock()
		for i := len(ages) - 1; i >= 0; i-- {
			if age >= ages[i] {
				add(&counts[i])
				return
			}
		}
	}
	err = together(ctx, min(writers, p.Samples), func(ctx context.Context, writer int) error {
		for n := 1; writer+(n-1)*writers < p.Samples; n++ {
			if err := p.readAfterWrite(ctx, table, fmt.Sprint("writer-", writer), n, count); err != nil {
				return err
			}
		}
		return nil
	})
	var b strings.Builder
	b.WriteString("| age of the write, from | reads of the table | stale | reads of the index | stale |\n|---|---|---|---|---|\n")
	for i, c := range counts {
		fmt.Fprintf(&b, "| %v | %d | %s | %d | %s |\n", ages[i], c.table, rate(c.staleTable, c.table), c.index, rate(c.staleIndex, c.index))
	}
	return b.String(), err
}

func rate(part, all int) string {
	if all == 0 {
		return "-"
	}
	return fmt.Sprintf("%d (%.2f %%)", part, 100*float64(part)/float64(all))
}

func (p *proof) readAfterWrite(ctx context.Context, table, writer string, n int, count func(time.Duration, func(*reads))) error {
	it := key(writer, "-")
	it["grp"], it["shown"] = text(writer), text(strconv.Itoa(n))
	if _, err := p.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: it}); err != nil {
		return err
	}
	written := time.Now()
	for _, age := range ages {
		if !sleep(ctx, time.Until(written.Add(age))) {
			return context.Cause(ctx)
		}
		sent := time.Since(written)
		out, err := p.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key(writer, "-")})
		if err != nil {
			return err
		}
		count(sent, func(r *reads) {
			r.table++
			if !shows(out.Item, n) {
				r.staleTable++
			}
		})
		sent = time.Since(written)
		page, err := p.Client.Query(ctx, &dynamodb.QueryInput{
			TableName: &table, IndexName: aws.String(byGroup), KeyConditionExpression: aws.String("grp = :grp"),
			ExpressionAttributeValues: item{":grp": text(writer)},
		})
		if err != nil {
			return err
		}
		count(sent, func(r *reads) {
			r.index++
			if len(page.Items) == 0 || !shows(page.Items[0], n) {
				r.staleIndex++
			}
		})
	}
	// The measurement itself is wrong if a strongly consistent read is stale.
	out, err := p.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key(writer, "-"), ConsistentRead: aws.Bool(true)})
	if err == nil && !shows(out.Item, n) {
		err = fmt.Errorf("a strongly consistent read does not see write %d of %s", n, writer)
	}
	return err
}

func shows(it item, n int) bool {
	shown, ok := it["shown"].(*types.AttributeValueMemberS)
	return ok && shown.Value == strconv.Itoa(n)
}
