package engine

import (
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// table is a table with its rows.
type table struct {
	name    string // never changes, like what follows
	key     keySchema
	created time.Time
	id      string
	local   bool // there are local indexes

	mu       sync.RWMutex // guards what follows
	dropped  bool         // deleted; who still holds the table must not use it
	settings settings
	rows     *rows
	size     int64 // bytes of all items
	indexes  []*index
	expiry   *expiry             // nil while no attribute says when an item expires
	held     map[position]*write // by transactions under way
}

// settings are what CreateTable and UpdateTable set and DescribeTable returns, and nothing here
// depends on.
type settings struct {
	attributes         []types.AttributeDefinition
	billing            types.BillingMode
	throughput         *types.ProvisionedThroughput
	onDemand           *types.OnDemandThroughput
	onDemandSince      time.Time // zero if the table was never billed by request
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
	pending    *pending // changes that have not arrived; nil where there are none
}

type indexSettings struct {
	throughput *types.ProvisionedThroughput
	onDemand   *types.OnDemandThroughput
}
