package engine

import (
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// table is a table with its rows.
type table struct {
	name    string // never changes, like the fields below
	key     keySchema
	created time.Time
	id      string
	local   bool // whether there are local indexes

	mu       sync.RWMutex // guards the fields below
	dropped  bool         // deleted; a goroutine that still has the table must not use it
	settings settings
	rows     *rows
	size     int64 // bytes of all items
	indexes  []*index
	expiry   *expiry             // nil if no attribute determines expiry
	held     map[position]*write // items held by transactions under way
	history  *history            // nil if the database keeps none
}

// settings are the settings that CreateTable and UpdateTable store and DescribeTable returns. They
// have no other effect.
type settings struct {
	attributes         []types.AttributeDefinition
	billing            types.BillingMode
	throughput         *types.ProvisionedThroughput
	onDemand           *types.OnDemandThroughput
	onDemandSince      time.Time // zero if the table was never billed on demand
	class              types.TableClass
	encryption         *types.SSESpecification
	deletionProtection bool
}

// index is a secondary index with its rows.
type index struct {
	name       string
	global     bool
	key        keySchema
	projection types.Projection
	settings   indexSettings // of a global index
	rows       *rows
	size       int64
	pending    *pending // changes that have not arrived; nil if there are none
}

type indexSettings struct {
	throughput *types.ProvisionedThroughput
	onDemand   *types.OnDemandThroughput
}
