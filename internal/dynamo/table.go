package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/internal/retry"
)

// TableClient is the part of *dynamodb.Client that creates tables.
type TableClient interface {
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
}

// EnsureTable creates a table if it does not exist, and waits until it and its indexes are active.
// If the table exists, it compares the keys. It repeats failed requests like [Start], and waits for
// up to ten minutes.
//
// Errors: [*MismatchError], [ErrTableMissing] for an index that an existing table lacks,
// [ErrAccess].
func EnsureTable(ctx context.Context, client TableClient, table *dynamodb.CreateTableInput) error {
	return ensureTable(ctx, client, table, true)
}

// VerifyTable does the same as [EnsureTable] for a table that must exist.
func VerifyTable(ctx context.Context, client TableClient, table *dynamodb.CreateTableInput) error {
	return ensureTable(ctx, client, table, false)
}

func ensureTable(ctx context.Context, client TableClient, want *dynamodb.CreateTableInput, create bool) error {
	wait := backoff.WithContext(retry.Pauses(5*time.Millisecond, 2*time.Second, 10*time.Minute), ctx)
	return backoff.Retry(func() error {
		var inactive error
		err := Start(ctx, func(ctx context.Context) (err error) {
			inactive, err = tableState(ctx, client, want, create)
			return Explain(err, *want.TableName)
		})
		if err != nil {
			return backoff.Permanent(err)
		}
		return inactive
	}, wait)
}

// tableState returns why a table that is as wanted is not active yet. It creates a missing table if
// create is true. The table must then be described again, because DescribeTable is eventually
// consistent.
func tableState(ctx context.Context, client TableClient, want *dynamodb.CreateTableInput, create bool) (inactive, err error) {
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: want.TableName})
	var missing *types.ResourceNotFoundException
	if create && errors.As(err, &missing) {
		_, err := client.CreateTable(ctx, want)
		var exists *types.ResourceInUseException
		if errors.As(err, &exists) {
			err = nil
		}
		return errors.New("table is not yet described"), err
	}
	if err != nil {
		return nil, err
	}
	if err := compareTable(want, out.Table); err != nil {
		return nil, err
	}
	if status := out.Table.TableStatus; status != types.TableStatusActive && status != types.TableStatusUpdating {
		return fmt.Errorf("table is %s", status), nil
	}
	for _, index := range out.Table.GlobalSecondaryIndexes {
		if index.IndexStatus == types.IndexStatusCreating || index.IndexStatus == types.IndexStatusDeleting {
			return fmt.Errorf("index %q is %s", *index.IndexName, index.IndexStatus), nil
		}
	}
	return nil, nil
}

func compareTable(want *dynamodb.CreateTableInput, got *types.TableDescription) error {
	table := *want.TableName
	given := keysText(want.KeySchema, want.AttributeDefinitions)
	if stored := keysText(got.KeySchema, got.AttributeDefinitions); stored != given {
		return &MismatchError{Table: table, Field: "keys", Stored: stored, Given: given}
	}
	for _, index := range want.GlobalSecondaryIndexes {
		given := keysText(index.KeySchema, want.AttributeDefinitions)
		i := slices.IndexFunc(got.GlobalSecondaryIndexes, func(g types.GlobalSecondaryIndexDescription) bool {
			return *g.IndexName == *index.IndexName
		})
		if i < 0 {
			return &IndexMissingError{Table: table, Index: *index.IndexName, Keys: given, Projected: projectionText(index.Projection)}
		}
		g := got.GlobalSecondaryIndexes[i]
		stored := keysText(g.KeySchema, got.AttributeDefinitions)
		if g.Projection != nil && !projects(g.Projection, index.Projection) {
			stored += " projecting " + projectionText(g.Projection)
			given += " projecting " + projectionText(index.Projection)
		}
		if stored != given {
			return &MismatchError{Table: table, Field: fmt.Sprintf("index %q on", *index.IndexName), Stored: stored, Given: given}
		}
	}
	return nil
}

// projects reports whether an index holds all attributes that it has to hold.
func projects(got, want *types.Projection) bool {
	if got.ProjectionType == types.ProjectionTypeAll || want.ProjectionType == types.ProjectionTypeKeysOnly {
		return true
	}
	missing := func(attribute string) bool { return !slices.Contains(got.NonKeyAttributes, attribute) }
	return want.ProjectionType == types.ProjectionTypeInclude && !slices.ContainsFunc(want.NonKeyAttributes, missing)
}

// projectionText returns which attributes an index holds, such as "ALL" or "INCLUDE [a b]".
func projectionText(p *types.Projection) string {
	if p.ProjectionType == types.ProjectionTypeInclude {
		return fmt.Sprint(p.ProjectionType, " ", p.NonKeyAttributes)
	}
	return string(p.ProjectionType)
}

// keysText returns keys with their types, such as "(pkey S, skey S)".
func keysText(schema []types.KeySchemaElement, attributes []types.AttributeDefinition) string {
	var hash, sort string
	for _, k := range schema {
		text := *k.AttributeName
		for _, a := range attributes {
			if *a.AttributeName == *k.AttributeName {
				text += " " + string(a.AttributeType)
			}
		}
		if k.KeyType == types.KeyTypeHash {
			hash = text
		} else {
			sort = ", " + text
		}
	}
	return "(" + hash + sort + ")"
}
