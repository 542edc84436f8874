package engine

// Cost is what a call used: capacity units by the rules that AWS publishes, and items.
type Cost struct {
	Charges  []Charge
	Returned int // items given back
	Scanned  int // items that Query and Scan went through
	Written  int // items put, changed or deleted

	Exhausted []Partition // that had too little left for the call
}

// Charge is what a call used of one table or index, in capacity units.
type Charge struct {
	Table  string
	Index  string // empty for the table itself
	Global bool   // a global index
	Read   float64
	Write  float64
}

// Totals are the sums over all charges.
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

// Multiples of the unit by how a call reads or writes. Source: Developer Guide, "DynamoDB read and
// write operations" and "Amazon DynamoDB Transactions: How it works".
const (
	eventual      = 0.5
	strong        = 1
	transactional = 2
)

// readUnits is a read of size bytes, strongly consistent: one unit for each 4 KB begun, and one for
// nothing.
func readUnits(size int) float64 { return units(size, 4<<10) }

// writeUnits is a write of size bytes: one unit for each KB begun.
func writeUnits(size int) float64 { return units(size, 1<<10) }

func units(size, unit int) float64 { return float64(max(1, (size+unit-1)/unit)) }

func consistency(consistent *bool) float64 {
	if consistent != nil && *consistent {
		return strong
	}
	return eventual
}
