package machine

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// Streams is the part of the client of DynamoDB Streams that a [Mapping] uses.
type Streams interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

// MappingConfig configures a [Mapping]. The zero values of the options are as in Lambda, except
// that Retries has no limit there.
type MappingConfig struct {
	Streams Streams
	// Stream is the ARN of the stream.
	Stream string
	// Invoke is Function.Invoke.
	Invoke func(ctx context.Context, payload []byte, response io.Writer) error
	// Batch is the largest number of records of an invocation. Default: 100.
	Batch int
	// Window is how long a batch waits for more records after its first one. Default: 0, so a batch
	// has the records that have arrived.
	Window time.Duration
	// Parallelization is the number of batches at a time for each shard. Records of the same
	// partition key are always in batches that follow each other. Default: 1.
	Parallelization int
	// Retries is how often a batch is repeated that has failed. Default: 0.
	Retries int
	// MaximumAge is the age from which records are dropped. DynamoDB Local rounds their times down
	// to minutes. Default: 0, no limit.
	MaximumAge time.Duration
	// Poll is the pause between two reads of a shard without new records. Default: 250 ms.
	Poll time.Duration
	// Dropped is called with records that are dropped, and the reason. Default: none.
	Dropped func(records []types.Record, err error)
	// Failed is called for each request to DynamoDB Streams that has failed, before it is repeated.
	// Default: none.
	Failed func(error)
}

// ErrTooOld reports records that are older than [MappingConfig].MaximumAge.
var ErrTooOld = errors.New("the records are too old")

// Mapping is the event source mapping of a DynamoDB stream and a function.
type Mapping struct {
	config MappingConfig
	key    string // the partition key of the table
	// known has the iterators of the shards at the beginning, nil for those that were closed.
	known map[string]*string
}

// NewMapping returns a mapping that begins with the records of writes after its return.
func NewMapping(ctx context.Context, c MappingConfig) (*Mapping, error) {
	if c.Batch == 0 {
		c.Batch = 100
	}
	if c.Poll == 0 {
		c.Poll = 250 * time.Millisecond
	}
	if c.Dropped == nil {
		c.Dropped = func([]types.Record, error) {}
	}
	if c.Failed == nil {
		c.Failed = func(error) {}
	}
	c.Parallelization = max(1, c.Parallelization)
	m := &Mapping{config: c, known: map[string]*string{}}
	key, shards, err := m.describe(ctx)
	if err != nil {
		return nil, err
	}
	m.key = key
	for _, s := range shards {
		if s.SequenceNumberRange != nil && s.SequenceNumberRange.EndingSequenceNumber != nil {
			m.known[*s.ShardId] = nil
			continue
		}
		if m.known[*s.ShardId], err = m.iterator(ctx, *s.ShardId, types.ShardIteratorTypeLatest, nil); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// describe returns the name of the partition key, and all shards.
func (m *Mapping) describe(ctx context.Context) (key string, shards []types.Shard, err error) {
	var after *string
	for {
		out, err := m.config.Streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &m.config.Stream, ExclusiveStartShardId: after})
		if err != nil {
			return "", nil, err
		}
		for _, k := range out.StreamDescription.KeySchema {
			if k.KeyType == types.KeyTypeHash {
				key = *k.AttributeName
			}
		}
		shards = append(shards, out.StreamDescription.Shards...)
		if after = out.StreamDescription.LastEvaluatedShardId; after == nil {
			return key, shards, nil
		}
	}
}

func (m *Mapping) iterator(ctx context.Context, shard string, from types.ShardIteratorType, sequenceNumber *string) (*string, error) {
	out, err := m.config.Streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &m.config.Stream, ShardId: &shard, ShardIteratorType: from, SequenceNumber: sequenceNumber,
	})
	if err != nil {
		return nil, err
	}
	return out.ShardIterator, nil
}

// Run invokes the function until ctx ends. It returns after all invocations have returned.
func (m *Mapping) Run(ctx context.Context) {
	var readers sync.WaitGroup
	defer readers.Wait()
	done := map[string]chan struct{}{} // closed when a shard was read to its end
	ended := make(chan struct{}, 1)    // receives when a shard was, because there are new ones then
	for ctx.Err() == nil {
		_, shards, err := m.describe(ctx)
		if err != nil {
			m.failed(ctx, err)
			continue
		}
		var fresh []types.Shard
		for _, s := range shards {
			if done[*s.ShardId] == nil {
				done[*s.ShardId] = make(chan struct{})
				fresh = append(fresh, s)
			}
		}
		for _, s := range fresh {
			end := done[*s.ShardId]
			var parent chan struct{} // nil if it is not listed any more
			if s.ParentShardId != nil {
				parent = done[*s.ParentShardId]
			}
			readers.Add(1)
			go func() {
				defer readers.Done()
				if parent != nil {
					select {
					case <-parent:
					case <-ctx.Done():
						return
					}
				}
				m.read(ctx, *s.ShardId)
				close(end)
				select {
				case ended <- struct{}{}:
				default:
				}
			}()
		}
		again := time.NewTimer(10 * time.Second)
		select {
		case <-ended:
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
	}
}

// read reads a shard to its end, or until ctx ends. It returns after all of its batches.
func (m *Mapping) read(ctx context.Context, shard string) {
	iterator, known := m.known[shard]
	if known && iterator == nil {
		return
	}
	lanes := make([]chan types.Record, m.config.Parallelization)
	var running sync.WaitGroup
	defer running.Wait()
	for i := range lanes {
		lanes[i] = make(chan types.Record, m.config.Batch)
		defer close(lanes[i])
		running.Add(1)
		go func() {
			defer running.Done()
			for batch := m.batch(ctx, lanes[i]); len(batch) > 0; batch = m.batch(ctx, lanes[i]) {
				m.deliver(ctx, batch)
			}
		}()
	}
	from, last := types.ShardIteratorTypeTrimHorizon, (*string)(nil)
	for ctx.Err() == nil {
		if iterator == nil {
			var err error
			if iterator, err = m.iterator(ctx, shard, from, last); err != nil {
				m.failed(ctx, err)
				continue
			}
		}
		out, err := m.config.Streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
		switch {
		case errors.As(err, new(*types.ExpiredIteratorException)):
			iterator = nil
			continue
		case errors.As(err, new(*types.TrimmedDataAccessException)):
			// Go on with the oldest record. On DynamoDB Local this also happens after a read of an
			// empty shard.
			iterator, from, last = nil, types.ShardIteratorTypeTrimHorizon, nil
			continue
		case err != nil:
			m.failed(ctx, err)
			continue
		}
		for _, r := range out.Records {
			from, last = types.ShardIteratorTypeAfterSequenceNumber, r.Dynamodb.SequenceNumber
			select {
			case lanes[m.lane(r)] <- r:
			case <-ctx.Done():
				return
			}
		}
		if iterator = out.NextShardIterator; iterator == nil {
			return // the shard is closed
		}
		if len(out.Records) == 0 {
			pause(ctx, m.config.Poll)
		}
	}
}

// lane returns the lane of all records with the partition key of a record.
func (m *Mapping) lane(r types.Record) int {
	h := fnv.New32a()
	switch key := r.Dynamodb.Keys[m.key].(type) {
	case *types.AttributeValueMemberS:
		_, _ = h.Write([]byte(key.Value))
	case *types.AttributeValueMemberN:
		_, _ = h.Write([]byte(key.Value))
	case *types.AttributeValueMemberB:
		_, _ = h.Write(key.Value)
	}
	return int(h.Sum32() % uint32(m.config.Parallelization))
}

// batch returns the next batch. It is empty if there are no more records, or ctx has ended.
func (m *Mapping) batch(ctx context.Context, records <-chan types.Record) (batch []types.Record) {
	select {
	case r, open := <-records:
		if !open {
			return nil
		}
		batch = append(batch, r)
	case <-ctx.Done():
		return nil
	}
	window := time.NewTimer(m.config.Window)
	defer window.Stop()
	for len(batch) < m.config.Batch {
		select {
		case r, open := <-records:
			if !open {
				return batch
			}
			batch = append(batch, r)
		case <-window.C:
			if len(records) == 0 {
				return batch
			}
			window.Reset(0) // take what has arrived
		case <-ctx.Done():
			return nil
		}
	}
	return batch
}

// deliver invokes the function with a batch until it succeeds, or drops it.
func (m *Mapping) deliver(ctx context.Context, batch []types.Record) {
	failures := 0
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		if batch = m.young(batch); len(batch) == 0 {
			return
		}
		err := m.config.Invoke(ctx, m.event(batch), io.Discard)
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case errors.Is(err, ErrThrottled): // does not count
		case failures == m.config.Retries:
			m.config.Dropped(batch, err)
			return
		default:
			failures++
		}
		pause(ctx, wait)
	}
}

// young drops records that are too old.
func (m *Mapping) young(batch []types.Record) []types.Record {
	n := 0
	for n < len(batch) && m.config.MaximumAge > 0 && time.Since(*batch[n].Dynamodb.ApproximateCreationDateTime) > m.config.MaximumAge {
		n++
	}
	if n > 0 {
		m.config.Dropped(batch[:n], ErrTooOld)
	}
	return batch[n:]
}

// failed reports a failed request, and waits before the next one.
func (m *Mapping) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		m.config.Failed(err)
		pause(ctx, m.config.Poll)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
