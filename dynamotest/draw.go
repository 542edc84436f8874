package dynamotest

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
	"github.com/millrace-dev/millrace/dynamotest/internal/number"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// draws makes the random decisions of one injection.
type draws struct {
	of        *injector
	injection uint64

	mu     sync.Mutex
	counts map[uint64]uint64 // how often the same call came
}

// random returns a function that returns the random source of one call. The source is made at the
// first use. It depends on the seed, the injection, the call, and how often the same call came
// before. It does not depend on other calls.
func (d *draws) random(operation string, in any, touches []engine.Touch) func() *rand.Rand {
	var r *rand.Rand
	return func() *rand.Rand {
		if r == nil {
			call := identity(operation, in, touches) ^ d.injection<<48
			d.mu.Lock()
			nth := d.counts[call]
			d.counts[call]++
			d.mu.Unlock()
			d.of.drew.Store(true)
			r = rand.New(rand.NewPCG(d.of.seed, call+nth)) //nolint:gosec // not for secrets
		}
		return r
	}
}

// identity is the same for calls of one operation on the same keys. A Query or Scan names no keys,
// so for these it depends on the whole request.
func identity(operation string, in any, touches []engine.Touch) uint64 {
	h := fnv.New64a()
	text := func(texts ...string) {
		for _, t := range texts {
			_, _ = h.Write(binary.AppendUvarint([]byte(t), uint64(len(t))))
		}
	}
	item := func(item value.Item) {
		for _, name := range slices.Sorted(maps.Keys(item)) {
			text(name, value.Type(item[name]), scalar(item[name]))
		}
	}
	text(operation)
	for _, touch := range touches {
		text(touch.Table, touch.Index)
		item(touch.Key)
	}
	switch in := in.(type) {
	case *dynamodb.QueryInput:
		text(aws.ToString(in.KeyConditionExpression), aws.ToString(in.FilterExpression), aws.ToString(in.ProjectionExpression),
			string(in.Select), strconv.Itoa(int(aws.ToInt32(in.Limit))), strconv.FormatBool(in.ScanIndexForward == nil || *in.ScanIndexForward))
		item(in.ExpressionAttributeValues)
		item(in.ExclusiveStartKey)
	case *dynamodb.ScanInput:
		text(aws.ToString(in.FilterExpression), aws.ToString(in.ProjectionExpression), string(in.Select), strconv.Itoa(int(aws.ToInt32(in.Limit))),
			strconv.Itoa(int(aws.ToInt32(in.Segment))), strconv.Itoa(int(aws.ToInt32(in.TotalSegments))))
		item(in.ExpressionAttributeValues)
		item(in.ExclusiveStartKey)
	}
	return h.Sum64()
}

// scalar returns a value that can be a key as text.
func scalar(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		if n, err := number.Parse(v.Value); err == nil {
			return n.String()
		}
		return v.Value
	case *types.AttributeValueMemberB:
		return string(v.Value)
	}
	return ""
}
