package infra

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/permissions"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

// Kinds are the tables that can be selected, in the order of the documents.
var Kinds = []permissions.Resource{
	permissions.Journal, permissions.Snapshot, permissions.Checkpoint, permissions.Process, permissions.ReadModel, permissions.Dedup, permissions.Keys,
}

// Names are the names of the tables, by kind.
type Names map[permissions.Resource]string

// Table is a table to create.
type Table struct {
	Kind       permissions.Resource
	Input      *dynamodb.CreateTableInput
	TimeToLive string // attribute, empty for none
}

// Tables returns the tables of all kinds that have a name. Without capacity they are on demand.
//
// Errors: those of journal.Schema, dedup.TableSchema and encrypt.TableSchema.
func Tables(layout journal.Layout, names Names, capacity *Capacity) (tables []Table, err error) {
	all, err := schemas(layout, names)
	if err != nil {
		return nil, err
	}
	for _, kind := range Kinds {
		if names[kind] == "" {
			continue
		}
		schema := all[kind]
		capacity.set(schema.Input)
		tables = append(tables, Table{Kind: kind, Input: schema.Input, TimeToLive: schema.TimeToLive})
	}
	return tables, nil
}

// schemas returns the tables of all kinds. Kinds without a name have the default one.
func schemas(layout journal.Layout, names Names) (map[permissions.Resource]journal.TableSchema, error) {
	core, err := journal.Schema(journal.Config{Layout: layout, Tables: journal.Tables{
		Journal: names[permissions.Journal], Snapshot: names[permissions.Snapshot], Checkpoint: names[permissions.Checkpoint],
	}})
	if err != nil {
		return nil, err
	}
	marks, err := dedup.TableSchema(dedup.TableConfig{Name: names[permissions.Dedup]})
	if err != nil {
		return nil, err
	}
	keys, err := encrypt.TableSchema(encrypt.KeysConfig{Table: names[permissions.Keys]})
	if err != nil {
		return nil, err
	}
	return map[permissions.Resource]journal.TableSchema{
		permissions.Journal: core[0], permissions.Snapshot: core[1], permissions.Checkpoint: core[2],
		permissions.Process:   process.TableSchema(names[permissions.Process]),
		permissions.ReadModel: readmodel.TableSchema(names[permissions.ReadModel]),
		permissions.Dedup:     marks, permissions.Keys: keys,
	}, nil
}

// Capacity is what provisioned tables and their indexes have, in units a second.
type Capacity struct{ Read, Write, IndexRead, IndexWrite int64 }

func (c *Capacity) set(table *dynamodb.CreateTableInput) {
	if c == nil {
		return
	}
	table.BillingMode = types.BillingModeProvisioned
	table.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(c.Read), WriteCapacityUnits: aws.Int64(c.Write)}
	for i := range table.GlobalSecondaryIndexes {
		table.GlobalSecondaryIndexes[i].ProvisionedThroughput = &types.ProvisionedThroughput{
			ReadCapacityUnits: aws.Int64(c.IndexRead), WriteCapacityUnits: aws.Int64(c.IndexWrite),
		}
	}
}

// keys returns the partition key and the sort key of a schema, which is empty if there is none.
func keys(schema []types.KeySchemaElement) (partition, sort string) {
	for _, key := range schema {
		if key.KeyType == types.KeyTypeHash {
			partition = *key.AttributeName
		} else {
			sort = *key.AttributeName
		}
	}
	return partition, sort
}
