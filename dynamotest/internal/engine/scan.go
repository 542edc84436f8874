package engine

import (
	"encoding/binary"
	"math/bits"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// maxSegments is the largest number of segments of a parallel scan.
const maxSegments = 1_000_000

// Scan implements the operation.
func (db *Database) Scan(c *Cost, in *dynamodb.ScanInput, f *Interference) (*dynamodb.ScanOutput, error) {
	t, err := db.table(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := first(
		bounded("limit", in.Limit, 1, maxInt32),
		bounded("totalSegments", in.TotalSegments, 1, maxSegments),
		bounded("segment", in.Segment, 0, maxSegments-1),
		checkSegment(in),
		checkSelect(in.Select, in.ProjectionExpression, in.IndexName),
	); err != nil {
		return nil, err
	}
	a, err := placeholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		filterSource(in.FilterExpression), projectionSource(in.ProjectionExpression))
	if err != nil {
		return nil, err
	}
	r, err := newReader(t, in.Limit, in.FilterExpression, in.ProjectionExpression, a)
	if err != nil {
		return nil, err
	}
	if err := a.CheckUsed(); err != nil {
		return nil, err
	}
	unlock, err := db.lockFor(t, f)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := r.open(in.IndexName, in.ConsistentRead, in.Select); err != nil {
		return nil, err
	}
	part := segment{of: 1}
	if in.TotalSegments != nil {
		part = segment{number: uint64(*in.Segment), of: uint64(*in.TotalSegments)} //nolint:gosec // not negative
	}
	from := part.start()
	after, err := r.startKey(in.ExclusiveStartKey)
	if err != nil {
		return nil, err
	}
	if after != nil {
		if !part.has(*after) {
			return nil, apierror.Validation("The provided starting key is invalid: Exclusive start key must lie within the segment")
		}
		from = *after
	}

	rows := r.rows()
	if r.ix == nil {
		rows = db.seenRows(t, f, t.changed()...)
	}
	shares := map[string]share{}
	more := false
	rows.Ascend(&row{position: from}, func(at *row) bool {
		switch {
		case after != nil && at.position == *after, part.before(at.position):
			return true
		case !part.has(at.position):
			return false
		}
		if more = !r.visit(at); !more && db.throughput != nil {
			shares[at.partition] = share{bytes: shares[at.partition].bytes + at.size, of: at}
		}
		return !more
	})
	if r.err != nil {
		return nil, r.err
	}
	if err := db.admit(c, func() []demand { return r.demandsOfAll(shares) }); err != nil {
		return nil, err
	}
	r.charge(c)
	return &dynamodb.ScanOutput{
		Items: r.returned(), Count: int32(r.matched), ScannedCount: int32(r.scanned), //nolint:gosec // at most a page
		LastEvaluatedKey: r.lastKey(more, false),
	}, nil
}

func checkSegment(in *dynamodb.ScanInput) error {
	switch {
	case in.Segment == nil && in.TotalSegments == nil:
		return nil
	case in.TotalSegments == nil:
		return apierror.Validation("The TotalSegments parameter is required but was not present in the request when Segment parameter is present")
	case in.Segment == nil:
		return apierror.Validation("The Segment parameter is required but was not present in the request when parameter TotalSegments is present")
	case *in.Segment >= *in.TotalSegments:
		return apierror.Validation("The Segment parameter is zero-based and must be less than parameter TotalSegments: "+
			"Segment: %d is not less than TotalSegments: %d", *in.Segment, *in.TotalSegments)
	}
	return nil
}

// segment is one of several equal ranges of the hashes.
type segment struct {
	number, of uint64
}

// numberOf returns the segment of a position. It grows with the hash.
func (s segment) numberOf(p position) uint64 {
	high, _ := bits.Mul64(binary.BigEndian.Uint64([]byte(p.partition[:hashSize])), s.of)
	return high
}

func (s segment) has(p position) bool    { return s.numberOf(p) == s.number }
func (s segment) before(p position) bool { return s.numberOf(p) < s.number }

// start returns a position at or before all positions of the segment.
func (s segment) start() position {
	if s.number == 0 {
		return position{}
	}
	hash, _ := bits.Div64(s.number, 0, s.of)
	return position{partition: string(binary.BigEndian.AppendUint64(nil, hash))}
}

// share is the part of a page that lies in one partition.
type share struct {
	bytes int
	of    *row
}

// demandsOfAll returns the units that a page of a scan needs, of each partition by its share of
// bytes.
func (r *reader) demandsOfAll(shares map[string]share) []demand {
	all := make([]demand, 0, len(shares))
	for partition, s := range shares {
		d := r.demands(partition, s.of.item[r.key().partition.name])[0]
		d.units *= float64(s.bytes) / float64(max(1, r.size))
		all = append(all, d)
	}
	return all
}
