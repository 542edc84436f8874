package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
)

// journalLine is a journal as JSON.
type journalLine struct {
	Kind     string         `json:"kind"` // "journal"
	Shards   int            `json:"shards"`
	Resolver string         `json:"resolver"`
	Layout   journal.Layout `json:"layout"`
	Unit     string         `json:"occurred_at_unit"` // of the stored times of events
	Required []string       `json:"required_encodings,omitempty"`

	RequiredByType map[string][]string `json:"required_by_type,omitempty"`

	Attributes map[string]string `json:"attributes"`
	Tables     []tableLine       `json:"tables"`
}

// tableLine is a table of a journal as JSON. DynamoDB updates the numbers of items and bytes about
// every six hours.
type tableLine struct {
	Holds   string   `json:"holds"` // "journal", "snapshot", "checkpoint"
	Name    string   `json:"name"`
	Status  string   `json:"status"` // as DynamoDB has it, or "MISSING"
	Items   int64    `json:"items"`
	Bytes   int64    `json:"bytes"`
	Billing string   `json:"billing,omitempty"` // "on-demand", "provisioned"
	Indexes []string `json:"indexes,omitempty"`
}

var tableColumns = []output.Column[tableLine]{
	{Name: "HOLDS", Cell: func(t tableLine) string { return t.Holds }},
	{Name: "TABLE", Cell: func(t tableLine) string { return t.Name }},
	{Name: "STATUS", Cell: func(t tableLine) string { return t.Status }},
	{Name: "ITEMS", Cell: func(t tableLine) string { return output.Count(t.Items) }},
	{Name: "SIZE", Cell: func(t tableLine) string { return output.Bytes(t.Bytes) }},
	{Name: "BILLING", Cell: func(t tableLine) string { return t.Billing }},
	{Name: "INDEXES", Cell: func(t tableLine) string { return strings.Join(t.Indexes, ", ") }},
}

func (a *app) describe() *cobra.Command {
	return &cobra.Command{
		Use:   "describe [flags]",
		Short: "Show how the journal was made: shards, key resolver, layout, tables",
		Long: `Show what the journal's descriptor says, and the tables. Items and sizes are DynamoDB's own figures,
which are up to six hours old.`,
		Args: wants(),
		RunE: a.does(func(cmd *cobra.Command, _ []string) error { return a.runDescribe(cmd.Context()) }),
	}
}

func (a *app) runDescribe(ctx context.Context) error {
	j, err := a.open(ctx)
	if err != nil {
		return err
	}
	c := j.Internal().Config
	l := journalLine{Kind: "journal", Shards: c.Shards, Resolver: c.Resolver.Name(), Layout: c.Layout, Attributes: attributesOf(c.Attributes), Required: c.RequiredEncodings, RequiredByType: c.RequiredByType}
	for name, unit := range timeUnits {
		if unit == c.OccurredAtUnit {
			l.Unit = name
		}
	}
	for _, t := range []tableLine{
		{Holds: "journal", Name: c.Tables.Journal}, {Holds: "snapshot", Name: c.Tables.Snapshot}, {Holds: "checkpoint", Name: c.Tables.Checkpoint},
	} {
		if err := t.describe(ctx, j.Client()); err != nil {
			return err
		}
		l.Tables = append(l.Tables, t)
	}
	fields := []output.Field{
		{Name: "place", Value: a.place.String()},
		{Name: "shards", Value: output.Count(l.Shards)},
		{Name: "resolver", Value: l.Resolver},
		{Name: "layout", Value: string(l.Layout)},
		{Name: "attributes", Value: strings.Join(j.Internal().AttributeNames(), ", ")},
		{Name: "time unit", Value: l.Unit},
	}
	if len(l.Required) > 0 {
		fields = append(fields, output.Field{Name: "required encodings", Value: strings.Join(l.Required, ", ")})
	}
	for _, aggregateType := range slices.Sorted(maps.Keys(l.RequiredByType)) {
		fields = append(fields, output.Field{Name: "required of " + aggregateType, Value: strings.Join(l.RequiredByType[aggregateType], ", ")})
	}
	if err := a.line(l, fields...); err != nil || a.json {
		return err
	}
	_, _ = fmt.Fprintln(a.env.Out)
	rows := output.NewRows(a.env.Out, false, tableColumns...)
	for _, t := range l.Tables {
		if err := rows.Print(t); err != nil {
			return err
		}
	}
	return rows.Flush()
}

func attributesOf(a journal.Attributes) map[string]string {
	return map[string]string{
		"partition_key": a.PartitionKey, "sort_key": a.SortKey, "aggregate_id": a.AggregateID, "sequence_number": a.SequenceNumber,
		"payload": a.Payload, "occurred_at": a.OccurredAt, "version": a.Version, "ttl": a.TTL,
	}
}

func (t *tableLine) describe(ctx context.Context, client journal.Client) error {
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.Name})
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		t.Status = "MISSING"
		return nil
	}
	if err != nil {
		return fmt.Errorf("describe table: %w", dynamo.Explain(err, t.Name))
	}
	t.Status = string(out.Table.TableStatus)
	t.Items, t.Bytes = aws.ToInt64(out.Table.ItemCount), aws.ToInt64(out.Table.TableSizeBytes)
	t.Billing = "provisioned" // DynamoDB returns no summary for tables that were never on demand
	if b := out.Table.BillingModeSummary; b != nil && b.BillingMode == types.BillingModePayPerRequest {
		t.Billing = "on-demand"
	}
	for _, index := range out.Table.GlobalSecondaryIndexes {
		t.Indexes = append(t.Indexes, aws.ToString(index.IndexName))
	}
	return nil
}
