package awsproof

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
)

const (
	restoreLimit = 3 * time.Hour
	restorePause = 20 * time.Second
)

// restore restores the journal table to a point in time, and compares the numbers of items. When a
// table with continuous backups is deleted, DynamoDB keeps a backup for 35 days, at no cost.
func (p *proof) restore(ctx context.Context) (string, error) {
	if !p.Restore {
		return "Not checked: -restore is not set.\n", nil
	}
	ctx, cancel := context.WithTimeout(ctx, restoreLimit)
	defer cancel()
	if _, err := p.journal(ctx, journal.Packed); err != nil {
		return "", err
	}
	from, to, enabled := tablesOf(p.prefix, journal.Packed).Journal, p.prefix+"-restored", time.Now()
	if _, err := p.Client.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName: &from, PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	}); dynamo.Code(err) == "UnknownOperationException" {
		return "Not checked: this database has no backups.\n", nil
	} else if err != nil {
		return "", err
	}
	if err := until(ctx, func() (bool, error) {
		out, err := p.Client.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &from})
		if err != nil || out.ContinuousBackupsDescription.PointInTimeRecoveryDescription == nil {
			return false, err
		}
		latest := out.ContinuousBackupsDescription.PointInTimeRecoveryDescription.LatestRestorableDateTime
		return latest != nil && latest.After(enabled), nil
	}); err != nil {
		return "", fmt.Errorf("wait for a point in time: %w", err)
	}
	waited, start := time.Since(enabled), time.Now()
	if _, err := p.Client.RestoreTableToPointInTime(ctx, &dynamodb.RestoreTableToPointInTimeInput{
		SourceTableName: &from, TargetTableName: &to, UseLatestRestorableTime: aws.Bool(true), BillingModeOverride: types.BillingModePayPerRequest,
	}); err != nil {
		return "", err
	}
	if err := until(ctx, func() (bool, error) {
		out, err := p.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &to})
		return err == nil && out.Table.TableStatus == types.TableStatusActive, err
	}); err != nil {
		return "", fmt.Errorf("wait for the restored table: %w", err)
	}
	took := time.Since(start)
	var items [2]int32
	for i, table := range []string{from, to} {
		for pages := dynamodb.NewScanPaginator(p.Client, &dynamodb.ScanInput{TableName: &table, Select: types.SelectCount}); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return "", err
			}
			items[i] += page.Count
		}
	}
	text := fmt.Sprintf("The first point in time came after %v. The restore took %v. The journal table has %d items, and the restored one %d.\n",
		waited.Round(time.Second), took.Round(time.Second), items[0], items[1])
	if items[0] != items[1] {
		return text, fmt.Errorf("%d of %d items were restored", items[1], items[0])
	}
	return text, nil
}

func until(ctx context.Context, done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if !sleep(ctx, restorePause) {
			return context.Cause(ctx)
		}
	}
}

// clock reports the differences between the Date headers of all replies and the local clock.
func (p *proof) clock(context.Context) (string, error) {
	p.meter.mu.Lock()
	defer p.meter.mu.Unlock()
	skews := p.meter.skews
	if len(skews) == 0 {
		return "Not checked: no reply had a Date header.\n", nil
	}
	by := func(a, b skew) int { return int(a.by - b.by) }
	least, most := slices.MinFunc(skews, by).by, slices.MaxFunc(skews, by).by
	return fmt.Sprintf("%d replies. The header has whole seconds, so a clock that agrees differs by -1 s to 0 s, less the time of the reply.\nIt differed from the local clock by %v to %v, first by %v and last by %v.\n",
		len(skews), least.Round(time.Millisecond), most.Round(time.Millisecond), skews[0].by.Round(time.Millisecond), skews[len(skews)-1].by.Round(time.Millisecond)), nil
}
