package journal

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TableSettings are the settings that requests need.
type TableSettings struct {
	Tables     Tables
	Indexes    Indexes
	Attributes Attributes

	Shards           int
	Resolver         KeyResolver
	CommandRetention time.Duration
	OccurredAtUnit   time.Duration
	RetryBudget      time.Duration
	Throughput       *types.ProvisionedThroughput // of new tables; nil for on-demand capacity

	Now   func() time.Time
	NewID func() string
}
