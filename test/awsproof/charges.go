package awsproof

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/units"
	"github.com/millrace-dev/millrace/journal"
)

// Metrics is the part of a *cloudwatch.Client that a run uses.
type Metrics interface {
	GetMetricStatistics(context.Context, *cloudwatch.GetMetricStatisticsInput, ...func(*cloudwatch.Options)) (*cloudwatch.GetMetricStatisticsOutput, error)
}

// charge is a number of equal requests on a table of their own, after a write that sets it up.
type charge struct {
	what, table string
	requests    int
	counted     float64 // write units, by journal.CountUnits, with the write that sets up
	from, to    time.Time
}

const missingKey = "attribute_not_exists(pk)"

// sendFailing sends requests that succeed, whose condition is false, and that are cancelled, each
// on its own table. The step metrics reports what they consumed.
func (p *proof) sendFailing(ctx context.Context) (string, error) {
	const setup = 2500 // bytes of the item in the table
	put := func(table string, n int, condition *string) *dynamodbtypes.Put {
		return &dynamodbtypes.Put{TableName: &table, Item: filled("item", fmt.Sprint(n), 100), ConditionExpression: condition}
	}
	for _, c := range []struct {
		what, table string
		send        func(ctx context.Context, table string, n int) error
	}{
		{"PutItem of 0.1 KB that succeeds", "charged-puts", func(ctx context.Context, table string, n int) error {
			_, err := units.Send(ctx, &dynamodb.PutItemInput{TableName: &table, Item: filled("item", fmt.Sprint(n), 100)}, p.Client.PutItem, nil)
			return err
		}},
		{"PutItem of 0.1 KB with a false condition, stored are 2.5 KB", "charged-conditions", func(ctx context.Context, table string, _ int) error {
			_, err := units.Send(ctx, &dynamodb.PutItemInput{
				TableName: &table, Item: filled("item", "-", 100), ConditionExpression: aws.String(missingKey),
			}, p.Client.PutItem, nil)
			return expected[*dynamodbtypes.ConditionalCheckFailedException](err)
		}},
		{"TransactWriteItems of two Puts of 0.1 KB, cancelled by the condition of one, stored are 2.5 KB", "charged-transactions", func(ctx context.Context, table string, n int) error {
			other := put(table, n, nil)
			refused := put(table, n, aws.String(missingKey))
			refused.Item["sk"] = text("-")
			_, err := units.Send(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []dynamodbtypes.TransactWriteItem{{Put: other}, {Put: refused}}}, p.Client.TransactWriteItems, nil)
			return expected[*dynamodbtypes.TransactionCanceledException](err)
		}},
	} {
		table, err := p.table(ctx, c.table)
		if err != nil {
			return "", err
		}
		from := time.Now()
		counting, counted := journal.CountUnits(ctx)
		if _, err := units.Send(counting, &dynamodb.PutItemInput{TableName: &table, Item: filled("item", "-", setup)}, p.Client.PutItem, nil); err != nil {
			return "", err
		}
		for n := range p.Samples {
			if err := c.send(counting, table, n); err != nil {
				return "", fmt.Errorf("%s: %w", c.what, err)
			}
		}
		p.charges = append(p.charges, charge{c.what, table, p.Samples, counted.Write(), from, time.Now()})
	}
	return fmt.Sprintf("%d requests of each kind were sent. The step metrics reports their units.\n", p.Samples), nil
}

// expected returns nil for an error of type E, and an error for any other result.
func expected[E error](err error) error {
	var want E
	switch {
	case errors.As(err, &want):
		return nil
	case err == nil:
		return fmt.Errorf("the request succeeded, want %T", want)
	}
	return err
}

// metrics compares the units of CloudWatch with those of journal.CountUnits.
func (p *proof) metrics(ctx context.Context) (string, error) {
	if p.Metrics == nil {
		return "Not checked: there is no CloudWatch.\n", nil
	}
	var b strings.Builder
	b.WriteString("| request | sent | journal.CountUnits | CloudWatch | beyond the count, for each request |\n|---|---|---|---|---|\n")
	for _, c := range p.charges {
		sum, err := p.settled(ctx, c)
		if err != nil {
			return b.String(), fmt.Errorf("%s: %w", c.table, err)
		}
		fmt.Fprintf(&b, "| %s | %d | %g | %g | %.2f |\n", c.what, c.requests, c.counted, sum, (sum-c.counted)/float64(c.requests))
	}
	return b.String() + "\nThe counts include the write of the stored item.\n", nil
}

// settled returns the sum of the write units of a table when it is the same for a minute, and not
// below the count. It returns the last sum when the time is over.
func (p *proof) settled(ctx context.Context, c charge) (sum float64, err error) {
	const pause = time.Minute
	for end := time.Now().Add(p.MetricsWait); ; {
		out, err := p.Metrics.GetMetricStatistics(ctx, &cloudwatch.GetMetricStatisticsInput{
			Namespace: aws.String("AWS/DynamoDB"), MetricName: aws.String("ConsumedWriteCapacityUnits"),
			Dimensions: []types.Dimension{{Name: aws.String("TableName"), Value: &c.table}},
			StartTime:  aws.Time(c.from.Truncate(time.Minute)), EndTime: aws.Time(c.to.Truncate(time.Minute).Add(time.Minute)),
			Period: aws.Int32(60), Statistics: []types.Statistic{types.StatisticSum},
		})
		if err != nil {
			return sum, err
		}
		last := sum
		sum = 0
		for _, point := range out.Datapoints {
			sum += aws.ToFloat64(point.Sum)
		}
		if time.Now().After(end) || sum > 0 && sum == last && sum >= c.counted {
			return sum, nil
		}
		if !sleep(ctx, min(pause, time.Until(end)+time.Second)) {
			return sum, context.Cause(ctx)
		}
	}
}
