package table

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/journal/journaltype"
)

// MaxShards is the largest number of shards. Every consumer group polls every shard, so more than a
// few hundred are rarely useful.
const MaxShards = 65_536

// Settings are the settings that requests need.
type Settings struct {
	Tables journaltype.Tables
	Shards int
	// ClassicOptions has the defaults in every other layout.
	journaltype.ClassicOptions

	CommandRetention time.Duration
	RetryBudget      time.Duration
	Throughput       *types.ProvisionedThroughput // of new tables; nil for on-demand capacity

	Now   func() time.Time
	NewID func() string
}
