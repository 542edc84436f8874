package table

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// CheckpointTable returns the table of consumer groups. It is the same in every layout.
func (s *Table) CheckpointTable() *dynamodb.CreateTableInput {
	a := s.Config.Attributes
	return s.TableInput(s.Config.Tables.Checkpoint, []types.AttributeDefinition{TextKey(a.PartitionKey), TextKey(a.SortKey)})
}

func TextKey(name string) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}
}

func NumberKey(name string) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeN}
}

// TableInput returns a table as it should be. Attributes are the key attributes of it and its indexes.
func (s *Table) TableInput(name string, attributes []types.AttributeDefinition, indexes ...types.GlobalSecondaryIndex) *dynamodb.CreateTableInput {
	billing := types.BillingModePayPerRequest
	if s.Config.Throughput != nil {
		billing = types.BillingModeProvisioned
	}
	return &dynamodb.CreateTableInput{
		TableName:              &name,
		AttributeDefinitions:   attributes,
		KeySchema:              keySchema(s.Config.Attributes.PartitionKey, s.Config.Attributes.SortKey),
		BillingMode:            billing,
		ProvisionedThroughput:  s.Config.Throughput,
		GlobalSecondaryIndexes: indexes,
	}
}

// Index returns an index that projects all attributes.
func (s *Table) Index(name, hash, sort string) types.GlobalSecondaryIndex {
	return types.GlobalSecondaryIndex{
		IndexName:             &name,
		KeySchema:             keySchema(hash, sort),
		Projection:            &types.Projection{ProjectionType: types.ProjectionTypeAll},
		ProvisionedThroughput: s.Config.Throughput,
	}
}
