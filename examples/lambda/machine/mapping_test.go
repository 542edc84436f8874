package machine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/lambda/machine"
	"github.com/millrace-dev/millrace/internal/testdb"
)

// fakeStream is a stream in memory. An iterator is the id of a shard and a position in it.
type fakeStream struct {
	mu     sync.Mutex
	shards []*shard
	expire bool // the next read fails
}

type shard struct {
	id, parent string
	closed     bool
	records    []types.Record
}

func (s *fakeStream) shard(id string) *shard {
	for _, sh := range s.shards {
		if sh.id == id {
			return sh
		}
	}
	return nil
}

// open adds a shard, and closes its parent.
func (s *fakeStream) open(id, parent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if parent != "" {
		s.shard(parent).closed = true
	}
	s.shards = append([]*shard{{id: id, parent: parent}}, s.shards...) // children come first
}

// put adds a record for each key. The sort key of a record is its position.
func (s *fakeStream) put(id string, keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.shard(id)
	for _, key := range keys {
		n := strconv.Itoa(len(sh.records))
		sh.records = append(sh.records, types.Record{EventName: types.OperationTypeInsert, EventID: aws.String(id + n), Dynamodb: &types.StreamRecord{
			Keys:           map[string]types.AttributeValue{"pkey": &types.AttributeValueMemberS{Value: key}, "skey": &types.AttributeValueMemberN{Value: n}},
			SequenceNumber: &n, ApproximateCreationDateTime: aws.Time(time.Now()), StreamViewType: types.StreamViewTypeKeysOnly,
		}})
	}
}

func (s *fakeStream) DescribeStream(
	_ context.Context, in *dynamodbstreams.DescribeStreamInput, _ ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.DescribeStreamOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &types.StreamDescription{KeySchema: []types.KeySchemaElement{
		{AttributeName: aws.String("pkey"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("skey"), KeyType: types.KeyTypeRange},
	}}
	for i, sh := range s.shards { // a page has one shard
		if in.ExclusiveStartShardId == nil || i > 0 && s.shards[i-1].id == *in.ExclusiveStartShardId {
			found := types.Shard{ShardId: &sh.id, SequenceNumberRange: &types.SequenceNumberRange{}}
			if sh.parent != "" {
				found.ParentShardId = &sh.parent
			}
			if sh.closed {
				found.SequenceNumberRange.EndingSequenceNumber = aws.String("0")
			}
			d.Shards = []types.Shard{found}
			if i < len(s.shards)-1 {
				d.LastEvaluatedShardId = &sh.id
			}
			break
		}
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d}, nil
}

func (s *fakeStream) GetShardIterator(
	_ context.Context, in *dynamodbstreams.GetShardIteratorInput, _ ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetShardIteratorOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	position := 0
	switch in.ShardIteratorType {
	case types.ShardIteratorTypeLatest:
		position = len(s.shard(*in.ShardId).records)
	case types.ShardIteratorTypeAfterSequenceNumber:
		last, err := strconv.Atoi(*in.SequenceNumber)
		if err != nil {
			return nil, err
		}
		position = last + 1
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: aws.String(fmt.Sprint(*in.ShardId, " ", position))}, nil
}

func (s *fakeStream) GetRecords(
	_ context.Context, in *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetRecordsOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expire {
		s.expire = false
		return nil, &types.ExpiredIteratorException{}
	}
	id, at, _ := strings.Cut(*in.ShardIterator, " ")
	position, err := strconv.Atoi(at)
	if err != nil {
		return nil, err
	}
	sh := s.shard(id)
	out := &dynamodbstreams.GetRecordsOutput{Records: sh.records[position:]}
	if !sh.closed {
		out.NextShardIterator = aws.String(fmt.Sprint(id, " ", len(sh.records)))
	}
	return out, nil
}

// receiver is a function. It records the records of each invocation.
type receiver struct {
	mu      sync.Mutex
	batches []string // such as "a0 b1"
	dropped []string // records, with the reason
	fail    func(batch string) error
}

func (r *receiver) invoke(_ context.Context, payload []byte, _ io.Writer) error {
	var event events.DynamoDBEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return err
	}
	var batch []string
	for _, e := range event.Records {
		batch = append(batch, e.Change.Keys["pkey"].String()+e.Change.Keys["skey"].Number())
	}
	time.Sleep(time.Second) // of the fake clock
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches = append(r.batches, strings.Join(batch, " "))
	if r.fail != nil {
		return r.fail(strings.Join(batch, " "))
	}
	return nil
}

func (r *receiver) drop(records []types.Record, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, record := range records {
		r.dropped = append(r.dropped, fmt.Sprint(*record.EventID, ": ", err))
	}
}

func (r *receiver) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.batches
	r.batches = nil
	return taken
}

// mapped runs a test with a mapping, on fake time.
func mapped(t *testing.T, c machine.MappingConfig, s *fakeStream, test func(t *testing.T, r *receiver)) {
	t.Helper()
	testdb.WithFakeTime(t, func(t *testing.T) {
		r := &receiver{}
		c.Streams, c.Invoke, c.Stream, c.Dropped = s, r.invoke, "arn", r.drop
		c.Failed = func(err error) { assert.NoError(t, err) }
		m, err := machine.NewMapping(t.Context(), c)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			m.Run(ctx)
		}()
		test(t, r)
		cancel()
		<-ended
	})
}

func one() *fakeStream { return &fakeStream{shards: []*shard{{id: "one"}}} }

const long = time.Minute // of the fake clock, in which everything is delivered

func TestABatchHasTheRecordsThatHaveArrived(t *testing.T) {
	s := one()
	s.put("one", "before")
	mapped(t, machine.MappingConfig{Batch: 3}, s, func(t *testing.T, r *receiver) {
		s.put("one", "a", "b", "c", "d")
		time.Sleep(long)
		s.put("one", "e")
		time.Sleep(long)
		assert.Equal(t, []string{"a1 b2 c3", "d4", "e5"}, r.take())
	})
}

func TestAWindowCollectsRecords(t *testing.T) {
	s := one()
	mapped(t, machine.MappingConfig{Batch: 3, Window: 10 * time.Second}, s, func(t *testing.T, r *receiver) {
		s.put("one", "a")
		time.Sleep(5 * time.Second)
		s.put("one", "b")
		time.Sleep(long)
		assert.Equal(t, []string{"a0 b1"}, r.take())
	})
}

func TestRecordsOfOneKeyStayInOrder(t *testing.T) {
	s := one()
	mapped(t, machine.MappingConfig{Batch: 2, Parallelization: 4}, s, func(t *testing.T, r *receiver) {
		var want time.Duration
		for range 20 {
			s.put("one", "a", "b", "c", "d", "e", "f", "g", "h")
			want += 4 * time.Second // one lane would need 80 invocations of a second each
		}
		began := time.Now()
		var got string
		for strings.Count(got, " ") < 160 {
			time.Sleep(100 * time.Millisecond)
			got += strings.Join(append(r.take(), ""), " ")
			require.Less(t, time.Since(began), want, "lanes must run beside each other")
		}
		last := map[byte]int{}
		for _, record := range strings.Fields(got) {
			n, err := strconv.Atoi(record[1:])
			require.NoError(t, err)
			assert.GreaterOrEqual(t, n, last[record[0]], "order of %c", record[0])
			last[record[0]] = n
		}
	})
}

func TestABatchIsRepeatedAndThenDropped(t *testing.T) {
	s := one()
	mapped(t, machine.MappingConfig{Batch: 2, Retries: 2}, s, func(t *testing.T, r *receiver) {
		r.fail = func(batch string) error {
			if batch == "a0 b1" {
				return errors.New("broken")
			}
			return nil
		}
		s.put("one", "a", "b", "c")
		time.Sleep(long)
		assert.Equal(t, []string{"a0 b1", "a0 b1", "a0 b1", "c2"}, r.take())
		assert.Equal(t, []string{"one0: broken", "one1: broken"}, r.dropped)
	})
}

func TestThrottledInvocationsAreRepeatedUntilTheRecordsAreTooOld(t *testing.T) {
	s := one()
	mapped(t, machine.MappingConfig{Batch: 1, MaximumAge: 15 * time.Second}, s, func(t *testing.T, r *receiver) {
		throttled := 0
		r.fail = func(batch string) error {
			if batch == "b1" || throttled < 3 {
				throttled++
				return machine.ErrThrottled
			}
			return nil
		}
		s.put("one", "a")
		time.Sleep(10 * time.Second)
		assert.Equal(t, []string{"a0", "a0", "a0", "a0"}, r.take())
		s.put("one", "b")
		time.Sleep(long)
		assert.Greater(t, len(r.take()), 3)
		assert.Equal(t, []string{"one1: the records are too old"}, r.dropped)
	})
}

func TestAChildIsReadAfterItsParent(t *testing.T) {
	s := one()
	s.open("two", "one") // "one" is closed, and was read by others
	s.put("one", "before")
	mapped(t, machine.MappingConfig{Batch: 10}, s, func(t *testing.T, r *receiver) {
		s.put("two", "a", "b")
		s.open("three", "two")
		s.put("three", "c")
		s.open("four", "three")
		s.put("four", "d")
		time.Sleep(long)
		assert.Equal(t, []string{"a0 b1", "c0", "d0"}, r.take())
	})
}

func TestShardsThatCloseTogetherAreReadToTheirEnds(t *testing.T) {
	s := &fakeStream{}
	const shards = 20
	for n := range shards {
		s.open(fmt.Sprint("parent", n), "")
	}
	mapped(t, machine.MappingConfig{}, s, func(t *testing.T, r *receiver) {
		for n := range shards {
			s.open(fmt.Sprint("child", n), fmt.Sprint("parent", n))
			s.put(fmt.Sprint("child", n), "a")
		}
		time.Sleep(long)
		assert.Len(t, r.take(), shards)
	})
}

func TestAnExpiredIteratorIsReplaced(t *testing.T) {
	s := one()
	mapped(t, machine.MappingConfig{}, s, func(t *testing.T, r *receiver) {
		s.put("one", "a")
		time.Sleep(long)
		s.mu.Lock()
		s.expire = true
		s.mu.Unlock()
		time.Sleep(long)
		s.put("one", "b")
		time.Sleep(long)
		assert.Equal(t, []string{"a0", "b1"}, r.take())
	})
}
