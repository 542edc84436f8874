package checkpoint

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// FenceTime is how long the rows of a generation stay after its end. They fence the transactions of
// its handlers: a transaction that arrives late finds a row with a newer epoch or another position,
// and fails. Without the row it would commit, because the first transaction on an aggregate also
// creates the row.
//
// AWS accepts a signed request for at most 15 minutes. The rest of the time is for a process that
// was suspended, whose SDK signs its request again when it continues.
const FenceTime = 24 * time.Hour

// endUnit is the unit in which the end of a generation is stored, rounded up. So at most 25
// different times are kept, however often a group is reset.
const endUnit = time.Hour

// Ended holds the generations of a group that have ended and whose rows still exist. A generation
// is the time between two resets. Its number is the number of resets before it.
type Ended struct {
	deleted uint64 // the rows of the generations below it are deleted
	spans   []span
}

// span is some generations, from the end of the span before.
type span struct {
	before uint64 // the generations are below it
	at     uint64 // when the last of them ended, in units since 1970
}

// end adds a generation, which ends now.
func (e Ended) end(generation uint64, now time.Time) Ended {
	at := uint64(max(0, now.UnixMilli()/endUnit.Milliseconds())) + 1
	spans := slices.Clone(e.spans)
	for len(spans) > 1 && spans[1].isDue(now) {
		spans = spans[1:] // one span is enough for all rows that may be deleted
	}
	if n := len(spans); n > 0 && spans[n-1].at >= at { // the same time, or the clock was set back
		at, spans = spans[n-1].at, spans[:n-1]
	}
	return Ended{deleted: e.deleted, spans: append(spans, span{generation + 1, at})}
}

func (s span) until() time.Time {
	return time.UnixMilli(int64(s.at) * endUnit.Milliseconds()).Add(FenceTime) //nolint:gosec // hours
}

func (s span) isDue(now time.Time) bool { return !now.Before(s.until()) }

// Due returns the generations whose rows may be deleted, from the first to before the last.
func (e Ended) Due(now time.Time) (first, before uint64) {
	first, before = e.deleted, e.deleted
	for _, s := range e.spans {
		if s.isDue(now) {
			before = max(before, s.before)
		}
	}
	return first, before
}

// Until returns the time at which all rows may be deleted. It is zero if there are none.
func (e Ended) Until() time.Time {
	if len(e.spans) == 0 {
		return time.Time{}
	}
	return e.spans[len(e.spans)-1].until()
}

// without removes the generations below a number, whose rows were deleted.
func (e Ended) without(before uint64) Ended {
	left := Ended{deleted: max(e.deleted, before)}
	for _, s := range e.spans {
		if s.before > left.deleted {
			left.spans = append(left.spans, s)
		}
	}
	return left
}

// value encodes the numbers as varints, because the row of a membership must stay small. It returns
// nil if there is nothing to store.
func (e Ended) value() types.AttributeValue {
	if e.deleted == 0 && len(e.spans) == 0 {
		return nil
	}
	value := binary.AppendUvarint(nil, e.deleted)
	for _, s := range e.spans {
		value = binary.AppendUvarint(value, s.before)
		value = binary.AppendUvarint(value, s.at)
	}
	return &types.AttributeValueMemberB{Value: value}
}

func endedOf(v types.AttributeValue) (e Ended, err error) {
	b, _ := v.(*types.AttributeValueMemberB)
	if b == nil {
		return e, nil
	}
	var numbers []uint64
	for rest := b.Value; len(rest) > 0; {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			numbers = nil
			break
		}
		numbers, rest = append(numbers, n), rest[size:]
	}
	if len(numbers)%2 == 0 {
		return Ended{}, fmt.Errorf("%w: its ended generations are %x", ErrCorrupt, b.Value)
	}
	e.deleted = numbers[0]
	for i := 1; i < len(numbers); i += 2 {
		e.spans = append(e.spans, span{numbers[i], numbers[i+1]})
	}
	return e, nil
}
