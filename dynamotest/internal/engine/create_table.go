package engine

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// CreateTable creates a table. It can be used immediately, although the reply has the status
// CREATING like DynamoDB's.
func (db *Database) CreateTable(in *dynamodb.CreateTableInput) (*dynamodb.CreateTableOutput, error) {
	t, err := db.newTable(in)
	if err != nil {
		return nil, err
	}
	// It is described before other calls can see and change it.
	description := t.describe(types.TableStatusCreating)
	db.mu.Lock()
	defer db.mu.Unlock()
	if _, ok := db.tables[t.name]; ok {
		return nil, inUse("Table already exists: %s", t.name)
	}
	db.tables[t.name] = t
	return &dynamodb.CreateTableOutput{TableDescription: description}, nil
}

func (db *Database) newTable(in *dynamodb.CreateTableInput) (*table, error) {
	if err := checkTableName(in.TableName); err != nil {
		return nil, err
	}
	specs, err := checkCreateTable(in)
	if err != nil {
		return nil, err
	}
	billing := in.BillingMode
	if billing == "" {
		billing = types.BillingModeProvisioned
	}
	if err := checkThroughput(billing, in.ProvisionedThroughput, in.OnDemandThroughput); err != nil {
		return nil, err
	}
	key, indexes, err := parseKeys(in, specs, billing)
	if err != nil {
		return nil, err
	}
	if err := checkEncryption(in.SSESpecification); err != nil {
		return nil, err
	}
	t := &table{
		name:    strings.Clone(tableName(*in.TableName)),
		key:     key,
		created: db.config.Now(),
		id:      db.newTableID(),
		local:   len(in.LocalSecondaryIndexes) > 0,
		settings: settings{
			attributes:         copyOfAttributes(in.AttributeDefinitions),
			billing:            billing,
			throughput:         copyOfThroughput(in.ProvisionedThroughput),
			onDemand:           copyOfOnDemand(in.OnDemandThroughput),
			class:              in.TableClass,
			encryption:         copyOfEncryption(in.SSESpecification),
			deletionProtection: aws.ToBool(in.DeletionProtectionEnabled),
		},
		rows:    newRows(),
		indexes: indexes,
	}
	if billing == types.BillingModePayPerRequest {
		t.settings.onDemandSince = t.created
	}
	for _, ix := range indexes {
		ix.rows = newRows()
	}
	return t, nil
}

// checkCreateTable checks the form of a request.
func checkCreateTable(in *dynamodb.CreateTableInput) ([]indexSpec, error) {
	var c constraints
	if c.required("attributeDefinitions", in.AttributeDefinitions != nil) {
		c.attributes("attributeDefinitions", in.AttributeDefinitions)
	}
	c.billing(in.BillingMode)
	c.throughput("provisionedThroughput", in.ProvisionedThroughput)
	c.key("keySchema", in.KeySchema, maxSimpleKey)
	specs := make([]indexSpec, 0, len(in.LocalSecondaryIndexes)+len(in.GlobalSecondaryIndexes))
	for i, ix := range in.LocalSecondaryIndexes {
		specs = append(specs, localSpec(ix))
		c.index(element("localSecondaryIndexes", i), specs[len(specs)-1])
	}
	for i, ix := range in.GlobalSecondaryIndexes {
		specs = append(specs, globalSpec(ix))
		c.index(element("globalSecondaryIndexes", i), specs[len(specs)-1])
	}
	c.class(in.TableClass)
	c.encryption(in.SSESpecification)
	c.stream(in.StreamSpecification)
	if err := c.err(); err != nil {
		return nil, err
	}
	return specs, unsupportedInCreateTable(in)
}

func unsupportedInCreateTable(in *dynamodb.CreateTableInput) error {
	switch {
	case in.GlobalTableSettingsReplicationMode != "":
		return unsupported("GlobalTableSettingsReplicationMode")
	case in.GlobalTableSourceArn != nil:
		return unsupported("GlobalTableSourceArn")
	case in.ResourcePolicy != nil:
		return unsupported("ResourcePolicy")
	case in.StreamSpecification != nil && aws.ToBool(in.StreamSpecification.StreamEnabled):
		return unsupported("StreamSpecification")
	case in.StreamSpecification != nil && in.StreamSpecification.StreamViewType != "":
		return invalid("StreamViewType is specified, but StreamEnabled is false")
	case len(in.Tags) > 0:
		return unsupported("Tags")
	case len(in.VectorIndexes) > 0:
		return unsupported("VectorIndexes")
	case in.WarmThroughput != nil:
		return unsupported("WarmThroughput")
	}
	return nil
}

func parseKeys(in *dynamodb.CreateTableInput, specs []indexSpec, billing types.BillingMode) (keySchema, []*index, error) {
	if len(in.KeySchema) > len(in.AttributeDefinitions) {
		return keySchema{}, nil, apierror.Validation("Invalid KeySchema: Some index key attribute have no definition")
	}
	key, err := parseKey(in.KeySchema, in.AttributeDefinitions)
	switch {
	case err != nil:
		return keySchema{}, nil, err
	case in.LocalSecondaryIndexes != nil && len(in.LocalSecondaryIndexes) == 0:
		return keySchema{}, nil, invalid("List of LocalSecondaryIndexes is empty")
	case in.LocalSecondaryIndexes != nil && key.sort.name == "":
		return keySchema{}, nil, invalid("Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex")
	case in.GlobalSecondaryIndexes != nil && len(in.GlobalSecondaryIndexes) == 0:
		return keySchema{}, nil, invalid("List of GlobalSecondaryIndexes is empty")
	}
	indexes := make([]*index, len(specs))
	for i, spec := range specs {
		if indexes[i], err = spec.parse(key, in.AttributeDefinitions, billing); err != nil {
			return keySchema{}, nil, err
		}
	}
	if err := checkIndexes(indexes); err != nil {
		return keySchema{}, nil, err
	}
	return key, indexes, checkDefinitions(in.AttributeDefinitions, key, indexes)
}
