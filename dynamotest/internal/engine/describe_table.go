package engine

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// DescribeTable describes a table. Its count and sizes are current, while DynamoDB's are hours old.
func (db *Database) DescribeTable(in *dynamodb.DescribeTableInput) (*dynamodb.DescribeTableOutput, error) {
	t, err := db.named(in.TableName)
	if err != nil {
		return nil, err
	}
	if db.rlock(t) != nil {
		return nil, tableNotFound(t.name)
	}
	defer t.mu.RUnlock()
	return &dynamodb.DescribeTableOutput{Table: t.describe(types.TableStatusActive)}, nil
}

// named finds a table for an operation on tables. Its error contains the name, unlike the error of
// operations on items.
func (db *Database) named(name *string) (*table, error) {
	if err := checkTableName(name); err != nil {
		return nil, err
	}
	t, err := db.table(name)
	if err != nil {
		return nil, tableNotFound(tableName(*name))
	}
	return t, nil
}

func tableNotFound(name string) error {
	return notFound("Requested resource not found: Table: %s not found", name)
}

// describe requires t.mu. A table that is being created creates its indexes too.
func (t *table) describe(status types.TableStatus) *types.TableDescription {
	d := &types.TableDescription{
		AttributeDefinitions:      copyOfAttributes(t.settings.attributes),
		CreationDateTime:          aws.Time(t.created),
		DeletionProtectionEnabled: aws.Bool(t.settings.deletionProtection),
		ItemCount:                 aws.Int64(int64(t.rows.Len())),
		KeySchema:                 elementsOf(t.key),
		OnDemandThroughput:        copyOfOnDemand(t.settings.onDemand),
		ProvisionedThroughput:     describeThroughput(t.settings.throughput),
		SSEDescription:            describeEncryption(t.settings.encryption),
		TableArn:                  aws.String(tableARN(t.name)),
		TableId:                   aws.String(t.id),
		TableName:                 aws.String(t.name),
		TableSizeBytes:            aws.Int64(t.size),
		TableStatus:               status,
	}
	if !t.settings.onDemandSince.IsZero() {
		d.BillingModeSummary = &types.BillingModeSummary{
			BillingMode:                       t.settings.billing,
			LastUpdateToPayPerRequestDateTime: aws.Time(t.settings.onDemandSince),
		}
	}
	if t.settings.class != "" {
		d.TableClassSummary = &types.TableClassSummary{TableClass: t.settings.class}
	}
	indexStatus := types.IndexStatusActive
	if status == types.TableStatusCreating {
		indexStatus = types.IndexStatusCreating
	}
	for _, ix := range t.indexes {
		if ix.global {
			d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, t.describeGlobal(ix, indexStatus))
		} else {
			d.LocalSecondaryIndexes = append(d.LocalSecondaryIndexes, t.describeLocal(ix))
		}
	}
	return d
}

func (t *table) describeGlobal(ix *index, status types.IndexStatus) types.GlobalSecondaryIndexDescription {
	projection := copyOfProjection(ix.projection)
	return types.GlobalSecondaryIndexDescription{
		IndexArn:              aws.String(indexARN(t.name, ix.name)),
		IndexName:             aws.String(ix.name),
		IndexSizeBytes:        aws.Int64(ix.size),
		IndexStatus:           status,
		ItemCount:             aws.Int64(int64(ix.rows.Len())),
		KeySchema:             elementsOf(ix.key),
		OnDemandThroughput:    copyOfOnDemand(ix.settings.onDemand),
		Projection:            &projection,
		ProvisionedThroughput: describeThroughput(ix.settings.throughput),
	}
}

func (t *table) describeLocal(ix *index) types.LocalSecondaryIndexDescription {
	projection := copyOfProjection(ix.projection)
	return types.LocalSecondaryIndexDescription{
		IndexArn:       aws.String(indexARN(t.name, ix.name)),
		IndexName:      aws.String(ix.name),
		IndexSizeBytes: aws.Int64(ix.size),
		ItemCount:      aws.Int64(int64(ix.rows.Len())),
		KeySchema:      elementsOf(ix.key),
		Projection:     &projection,
	}
}
