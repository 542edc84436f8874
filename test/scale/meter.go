package scale

import (
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest"
)

// Place is a table or an index.
type Place struct{ Table, Index string }

// Units are capacity units.
type Units struct{ Read, Write float64 }

// Exhausted is a partition that had too little capacity.
type Exhausted struct {
	Place
	Partition string
	Operation string
}

// meter sums up the capacity that requests consume.
type meter struct {
	mu        sync.Mutex
	calls     map[string]int // by operation
	units     map[Place]Units
	exhausted map[Exhausted]int // number of requests
}

func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls, m.units, m.exhausted = map[string]int{}, map[Place]Units{}, map[Exhausted]int{}
}

func (m *meter) see(c dynamotest.Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.units == nil {
		return
	}
	m.calls[c.Operation]++
	for _, used := range c.Capacity {
		place := Place{used.Table, used.Index}
		sum := m.units[place]
		m.units[place] = Units{sum.Read + used.ReadUnits, sum.Write + used.WriteUnits}
	}
	for _, partition := range c.Exhausted {
		m.exhausted[Exhausted{Place{partition.Table, partition.Index}, keyText(partition.Key), c.Operation}]++
	}
}

// keyText returns a partition key of any type as text.
func keyText(key types.AttributeValue) string {
	switch key := key.(type) {
	case *types.AttributeValueMemberS:
		return key.Value
	case *types.AttributeValueMemberN:
		return key.Value
	case *types.AttributeValueMemberB:
		return string(key.Value)
	default:
		return ""
	}
}

// read copies the sums into a report.
func (m *meter) read(report *Report) {
	m.mu.Lock()
	defer m.mu.Unlock()
	report.Calls, report.Units, report.Exhausted = m.calls, m.units, m.exhausted
	m.units = nil
}
