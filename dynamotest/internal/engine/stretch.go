package engine

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/expression"
)

// stretch is a range of positions in one partition.
type stretch struct {
	partition           string
	key                 types.AttributeValue // of the partition
	low, high           string               // of the sort key
	hasLow, hasHigh     bool
	afterLow, belowHigh bool // the bounds themselves are excluded
	prefix              string
	equal               bool // the request was for one value
	only                bool // there is no sort key, so the partition has at most one row
}

func stretchOf(r expression.Range) stretch {
	s := stretch{partition: partitionOf(r.Partition), key: r.Partition, afterLow: r.LowExclusive, belowHigh: r.HighExclusive, equal: r.Equal}
	if s.hasLow = r.Low != nil; s.hasLow {
		s.low = sortable(r.Low)
	}
	if s.hasHigh = r.High != nil; s.hasHigh {
		s.high = sortable(r.High)
	}
	if r.Prefix != nil {
		s.prefix = sortable(r.Prefix)
	}
	return s
}

// side returns -1 for a position before the stretch, 1 for one behind it, and 0 otherwise.
func (s *stretch) side(p position) int {
	if c := strings.Compare(p.partition, s.partition); c != 0 {
		return c
	}
	if !strings.HasPrefix(p.sort, s.prefix) {
		return strings.Compare(p.sort, s.prefix)
	}
	if s.hasLow {
		if c := strings.Compare(p.sort, s.low); c < 0 || c == 0 && s.afterLow {
			return -1
		}
	}
	if s.hasHigh {
		if c := strings.Compare(p.sort, s.high); c > 0 || c == 0 && s.belowHigh {
			return 1
		}
	}
	return 0
}

// start returns a position at or before all positions of the stretch.
func (s *stretch) start() position {
	return position{partition: s.partition, sort: max(s.low, s.prefix)}
}

// end returns a position at or behind all positions of the stretch.
func (s *stretch) end() position {
	behindPartition := position{partition: s.partition + "\x00"}
	switch {
	case s.hasHigh: // rows of an index with this bound differ in their tie
		return position{partition: s.partition, sort: s.high + "\x00"}
	case s.prefix != "": // the first text after all texts with this prefix
		for i := len(s.prefix) - 1; i >= 0; i-- {
			if last := s.prefix[i]; last < 0xff {
				return position{partition: s.partition, sort: s.prefix[:i] + string([]byte{last + 1})}
			}
		}
	}
	return behindPartition
}

// ends reports whether a row is at the bound where a walk ends. In a table no row follows it,
// because no two rows have the same key.
func (s *stretch) ends(r *row, forward bool) bool {
	if r == nil || r.tie != "" {
		return false
	}
	if s.only {
		return true
	}
	if s.equal { // DynamoDB does not check this
		return false
	}
	if forward {
		return s.hasHigh && r.sort == s.high
	}
	return s.hasLow && r.sort == s.low
}

// walk visits the rows of the stretch in order, until visit returns false. If after is set, it
// begins with the row after that position.
func (s *stretch) walk(rows *rows, forward bool, after *position, visit func(*row) bool) {
	direction, from, iterate := 1, s.start(), rows.Ascend
	if !forward {
		direction, from, iterate = -1, s.end(), rows.Descend
	}
	if after != nil && after.compare(from)*direction > 0 {
		from = *after
	}
	iterate(&row{position: from}, func(r *row) bool {
		switch side := s.side(r.position) * direction; {
		case side < 0, after != nil && r.position.compare(*after)*direction <= 0:
			return true
		case side > 0:
			return false
		}
		return visit(r)
	})
}
