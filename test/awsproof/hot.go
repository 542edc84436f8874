package awsproof

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

// A hot partition receives more than the 1,000 write units a second that a partition accepts.
const (
	hotRate  = 400 // requests a second
	hotUnits = 4   // of a request
	hotRows  = 30
)

// hotPartition writes to one partition key.
func (p *proof) hotPartition(ctx context.Context) (string, error) {
	return p.hot(ctx, "hot-partition", func(int) item { return filled("hot", fmt.Sprint(rand.Uint64()), 4000) })
}

// hotIndex writes to many partition keys of a table, and to one of its index.
func (p *proof) hotIndex(ctx context.Context) (string, error) {
	return p.hot(ctx, "hot-index", func(n int) item {
		it := filled(fmt.Sprint(n), fmt.Sprint(rand.Uint64()), 4000)
		it["grp"] = text("hot")
		return it
	})
}

// interval is a part of the time of a hot partition.
type interval struct {
	units     float64 // of the table, accepted
	throttled int
}

func (p *proof) hot(ctx context.Context, name string, itemOf func(n int) item) (string, error) {
	table, err := p.table(ctx, name)
	if err != nil {
		return "", err
	}
	client, start := p.once(), time.Now()
	var mu sync.Mutex
	var first, last time.Duration // the throttled requests
	var sample error
	rows := make([]interval, hotRows+1) // the last is what ends later
	note := func(units float64, err error) error {
		mu.Lock()
		defer mu.Unlock()
		since := time.Since(start)
		row := &rows[min(hotRows, int(since*hotRows/p.Hot))]
		switch {
		case err == nil:
			row.units += units
		case dynamo.IsThrottle(err):
			row.throttled++
			if last = since; sample == nil {
				first, sample = since, err
			}
		default:
			return err
		}
		return nil
	}
	err = paced(ctx, hotRate, int(hotRate*p.Hot.Seconds()), 64, func(ctx context.Context, n int) error {
		out, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: itemOf(n), ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
		if err != nil {
			return note(0, err)
		}
		return note(aws.ToFloat64(out.ConsumedCapacity.Table.CapacityUnits), nil)
	})
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests a second, of %d units each. ", hotRate, hotUnits)
	if sample == nil {
		b.WriteString("None was throttled.\n")
	} else {
		fmt.Fprintf(&b, "The first was throttled after %v, the last after %v.\n\nThe error: %s\n", first.Round(time.Millisecond), last.Round(time.Millisecond), throttle(sample))
	}
	b.WriteString("\n| until | accepted units a second | throttled |\n|---|---|---|\n")
	width := p.Hot / hotRows
	for i, row := range rows {
		if row != (interval{}) {
			fmt.Fprintf(&b, "| %v | %.0f | %d |\n", (time.Duration(i+1) * width).Round(time.Millisecond), row.units/width.Seconds(), row.throttled)
		}
	}
	return b.String(), err
}

// throttle returns the text of an error, with the reasons of DynamoDB.
func throttle(err error) string {
	text := dynamo.Code(err) + ": " + err.Error()
	var throughput *types.ProvisionedThroughputExceededException
	var reasons []types.ThrottlingReason
	if errors.As(err, &throughput) {
		reasons = throughput.ThrottlingReasons
		text = throughput.ErrorCode() + ": " + throughput.ErrorMessage()
	}
	text += " Reasons:"
	for _, r := range reasons {
		text += fmt.Sprintf(" %s of %s;", aws.ToString(r.Reason), aws.ToString(r.Resource))
	}
	if len(reasons) == 0 {
		text += " none."
	}
	return text
}
