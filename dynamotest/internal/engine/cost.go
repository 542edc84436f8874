package engine

// Cost holds the capacity units of a call, by the published rules of AWS, and its items.
type Cost struct {
	Charges  []Charge
	Returned int // returned items
	Scanned  int // items that Query and Scan read
	Written  int // items that were put, changed or deleted

	Exhausted []Partition // partitions that had too few units left for the call
}

// Charge is the capacity that a call used of one table or index.
type Charge struct {
	Table  string
	Index  string // empty for the table itself
	Global bool   // whether it is a global index
	Read   float64
	Write  float64
}

// Totals returns the sums of all charges.
func (c *Cost) Totals() (read, write float64) {
	for _, charge := range c.Charges {
		read += charge.Read
		write += charge.Write
	}
	return read, write
}

func (c *Cost) add(charge Charge) {
	for i := range c.Charges {
		if at := &c.Charges[i]; at.Table == charge.Table && at.Index == charge.Index {
			at.Read += charge.Read
			at.Write += charge.Write
			return
		}
	}
	c.Charges = append(c.Charges, charge)
}

func (c *Cost) read(t *table, ix *index, units float64) {
	c.add(chargeOf(t, ix, units, 0))
}

func (c *Cost) write(t *table, ix *index, units float64) {
	c.add(chargeOf(t, ix, 0, units))
}

func chargeOf(t *table, ix *index, read, write float64) Charge {
	charge := Charge{Table: t.name, Read: read, Write: write}
	if ix != nil {
		charge.Index, charge.Global = ix.name, ix.global
	}
	return charge
}

// Factors of the units of a read or a write. Source: Developer Guide, "DynamoDB read and write
// operations" and "Amazon DynamoDB Transactions: How it works".
const (
	eventual      = 0.5
	strong        = 1
	transactional = 2
)

// readUnits returns the units of a strongly consistent read of size bytes: one for each started 4
// KB, and at least one.
func readUnits(size int) float64 { return units(size, 4<<10) }

// writeUnits returns the units of a write of size bytes: one for each started KB.
func writeUnits(size int) float64 { return units(size, 1<<10) }

func units(size, unit int) float64 { return float64(max(1, (size+unit-1)/unit)) }

func consistency(consistent *bool) float64 {
	if consistent != nil && *consistent {
		return strong
	}
	return eventual
}
