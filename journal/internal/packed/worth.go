package packed

import (
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
)

// commandBytes is about the size of a command id in a snapshot.
const commandBytes = 60

// paysFor reports whether the row of a commit's snapshot pays. It compresses the state, unless that
// is too large.
func (p *layout) paysFor(c *commit, row table.Item) bool {
	size := table.ItemSize(row)
	if size <= storage.MaxItemBytes {
		p.compressState(row)
		size = table.ItemSize(row)
	}
	if c.known != nil {
		size += commandBytes * min(len(c.known.Dated()), mostCommands)
	}
	return p.Pays(c.Worth, size)
}

const (
	// mostReplayed is how many bytes a load replays at most before a snapshot is stored in any
	// case.
	mostReplayed = 1 << 20
	// writePrice is the price of a write unit in read units.
	writePrice = 5
)

// Pays compares the price of the snapshot with what loads have cost since the last one. It assumes
// one load for each of the commits, and that the mean load has cost half of the last one. The sum
// of both prices is smallest if a snapshot is stored when they are equal.
func (p *layout) Pays(w *storage.Worth, bytes int) bool {
	price := writePrice * max(1, (bytes+1023)/1024)
	return w.Bytes >= mostReplayed || float64(w.Commits)*w.Units/2 >= float64(price)
}
