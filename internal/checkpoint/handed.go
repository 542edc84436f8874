package checkpoint

import (
	"slices"
	"strconv"
	"strings"
)

// A membership holds at most maxHanded ids with maxHandedBytes bytes, which cost one or two write
// units more.
const (
	maxHanded      = 50
	maxHandedBytes = 2 << 10
)

// SweepOf returns the value that hands the sweep of a shard over.
func SweepOf(shard int) string { return sweepMark + strconv.Itoa(shard) }

const sweepMark = "\x00sweep/"

// SweptShard reverses SweepOf. It returns false for the value of an id.
func SweptShard(value string) (shard int, is bool) {
	digits, is := strings.CutPrefix(value, sweepMark)
	shard, err := strconv.Atoi(digits)
	return shard, is && err == nil && shard >= 0
}

// HandOver adds values of ids and of [SweepOf]. It returns how many of them the membership then
// has: there may be too many.
func (r Membership) HandOver(values []string) (next Membership, handed int) {
	next = r.clone()
	size := 0
	for _, value := range next.Handed {
		size += len(value)
	}
	for _, value := range values {
		if !slices.Contains(next.Handed, value) {
			_, sweep := SweptShard(value)
			if size += len(value); !sweep && (len(next.Handed) >= maxHanded || size > maxHandedBytes) {
				break
			}
			next.Handed = append(next.Handed, value)
		}
		handed++
	}
	return next, handed
}

// TakeHanded removes the values for which own returns true, and returns them.
func (r Membership) TakeHanded(own func(value string) bool) (next Membership, values []string) {
	next = r.clone()
	next.Handed = slices.DeleteFunc(next.Handed, func(value string) bool {
		if !own(value) {
			return false
		}
		values = append(values, value)
		return true
	})
	return next, values
}
