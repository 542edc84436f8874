package journal

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/engine"
)

// TableSchema describes a table for programs that create tables by other means, such as Terraform
// or the AWS CDK. Packages process, readmodel, dedup and encrypt describe their tables with it too.
type TableSchema struct {
	// Input is the request that creates the table.
	Input *dynamodb.CreateTableInput
	// TimeToLive is the attribute for time to live. It is empty if time to live is off.
	TimeToLive string
}

// Schema returns the journal, the snapshot and the checkpoint table, in this order, as [Create]
// creates them. It sends no requests. If other means create the tables, call Create afterwards: it
// verifies them and stores the descriptor, which [Open] needs. Schema does not use Config.Shards.
//
// Errors: [*ConfigError].
func Schema(config Config) ([]TableSchema, error) {
	if err := chosen(config.Layout); err != nil {
		return nil, err
	}
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config.setDefaults()
	return schemaOf(engine.New(nil, config.settings(), layouts)), nil
}

func schemaOf(j *engine.Engine) (tables []TableSchema) {
	for _, name := range j.Layout.Tables() {
		tables = append(tables, TableSchema{Input: name, TimeToLive: j.Config.Attributes.TTL})
	}
	return append(tables, TableSchema{Input: j.CheckpointTable()})
}
