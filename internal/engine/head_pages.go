package engine

// HeadPages chooses the sizes of the pages of a list of heads, so that a list with a limit reads
// little more than it yields. It is nil for a list without a limit.
type HeadPages struct {
	wanted int // heads that are not yielded yet
	factor int // items to read for each head, since other items lie between them
	asked  int // size of the last page
	found  int // number of heads on it
}

// A page is at most mostWanted times mostItems, which an int32 can hold.
const (
	mostWanted = 1 << 20
	mostItems  = 1 << 10
)

func newHeadPages(limit int) *HeadPages {
	if limit == 0 {
		return nil
	}
	return &HeadPages{wanted: limit, factor: 1}
}

// more notes that a head was yielded, and reports whether another one is wanted.
func (p *HeadPages) more() bool {
	if p == nil {
		return true
	}
	p.found++
	p.wanted--
	return p.wanted > 0
}

// Size returns the number of items of the next page, nil for no limit. Largest bounds it, 0 for no
// bound.
func (p *HeadPages) Size(largest int) *int32 {
	size := largest
	if p != nil {
		size = min(p.wanted, mostWanted) * p.factor
		if largest > 0 {
			size = min(size, largest)
		}
		p.asked, p.found = size, 0
	}
	if size == 0 {
		return nil
	}
	limit := int32(size) //nolint:gosec // mostWanted and mostItems bound it
	return &limit
}

// Grow makes the next page larger if less than half of the items of the last page were heads.
func (p *HeadPages) Grow() {
	if p != nil && 2*p.found < p.asked {
		p.factor = min(2*p.factor, mostItems)
	}
}
