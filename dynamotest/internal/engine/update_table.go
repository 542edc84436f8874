package engine

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// UpdateTable changes the settings of a table, or adds or removes one global index. All changes are
// complete when it returns, although the reply has the status UPDATING like DynamoDB's.
func (db *Database) UpdateTable(in *dynamodb.UpdateTableInput) (*dynamodb.UpdateTableOutput, error) {
	if err := checkTableName(in.TableName); err != nil {
		return nil, err
	}
	actions, err := checkUpdateTable(in)
	if err != nil {
		return nil, err
	}
	t, err := db.named(in.TableName)
	if err != nil {
		return nil, err
	}
	if db.lock(t) != nil {
		return nil, tableNotFound(t.name)
	}
	defer t.mu.Unlock()
	next, err := t.plan(in, actions)
	if err != nil {
		return nil, err
	}
	if next.settings.billing != t.settings.billing && next.settings.billing == types.BillingModePayPerRequest {
		next.settings.onDemandSince = db.config.Now()
	}
	return &dynamodb.UpdateTableOutput{TableDescription: t.become(next)}, nil
}

// checkUpdateTable checks a request as far as possible without the table.
func checkUpdateTable(in *dynamodb.UpdateTableInput) ([]indexAction, error) {
	var c constraints
	c.attributes("attributeDefinitions", in.AttributeDefinitions)
	c.billing(in.BillingMode)
	c.throughput("provisionedThroughput", in.ProvisionedThroughput)
	c.class(in.TableClass)
	c.encryption(in.SSESpecification)
	c.stream(in.StreamSpecification)
	actions := c.actions("globalSecondaryIndexUpdates", in.GlobalSecondaryIndexUpdates)
	if err := c.err(); err != nil {
		return nil, err
	}
	if err := unsupportedInUpdateTable(in); err != nil {
		return nil, err
	}
	if in.ProvisionedThroughput == nil && in.BillingMode == "" && len(in.GlobalSecondaryIndexUpdates) == 0 && in.SSESpecification == nil &&
		in.DeletionProtectionEnabled == nil && in.TableClass == "" && in.OnDemandThroughput == nil && in.StreamSpecification == nil {
		return nil, apierror.Validation("At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, " +
			"GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required")
	}
	if in.BillingMode == types.BillingModeProvisioned && in.ProvisionedThroughput == nil {
		return nil, invalid("ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
	}
	if err := checkEncryption(in.SSESpecification); err != nil {
		return nil, err
	}
	return actions, checkActions(in.GlobalSecondaryIndexUpdates, actions)
}

func unsupportedInUpdateTable(in *dynamodb.UpdateTableInput) error {
	switch {
	case in.DisassociationProtectionEnabled != nil:
		return unsupported("DisassociationProtectionEnabled")
	case in.GlobalTableSettingsReplicationMode != "":
		return unsupported("GlobalTableSettingsReplicationMode")
	case len(in.GlobalTableWitnessUpdates) > 0:
		return unsupported("GlobalTableWitnessUpdates")
	case in.MultiRegionConsistency != "":
		return unsupported("MultiRegionConsistency")
	case len(in.ReplicaUpdates) > 0:
		return unsupported("ReplicaUpdates")
	case in.StreamSpecification != nil && aws.ToBool(in.StreamSpecification.StreamEnabled):
		return unsupported("StreamSpecification")
	case len(in.VectorIndexUpdates) > 0:
		return unsupported("VectorIndexUpdates")
	case in.WarmThroughput != nil:
		return unsupported("WarmThroughput")
	}
	return nil
}
