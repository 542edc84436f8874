package process

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
)

const (
	queuesRow      = "queues"
	countAttribute = "count"

	// maxQueues limits the cost of a mistake, since a stored number is never lowered.
	maxQueues = 256

	// Time from one read of the stored number to the next.
	countInterval = time.Minute
	countRetry    = 10 * time.Second // the same after a failure
	countTimeout  = time.Second
)

// queues are the partitions of the index over which the rows of one type of process are spread. The
// table stores their number in a row of the type, and that number only grows. Without the row there
// is one queue.
//
// A manager uses no more queues than it has seen stored. So it never writes to a queue that other
// managers do not know, whatever happens to its requests: until its own number is stored, its rows
// are in fewer queues. A row stays in its queue when the number grows.
type queues struct {
	client  Client
	table   string
	process string // the type
	want    int
	now     func() time.Time
	known   atomic.Int64 // at most the stored number

	// Turn holds one element while a goroutine reads the number. It protects the fields below.
	turn chan struct{}
	read time.Time     // time of the last read
	wait time.Duration // time until the next read
}

func newQueues(client Client, process string, c Config) *queues {
	q := &queues{client: client, table: c.Table, process: process, want: c.Queues, now: c.Now, turn: make(chan struct{}, 1)}
	q.known.Store(1)
	return q
}

func (q *queues) count() int { return int(q.known.Load()) }

func (q *queues) name(n int) string { return fmt.Sprintf("%s-%d", q.process, n) }

// of returns the queue for a row that is written now.
func (q *queues) of(id aggregate.ID) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id.Value))
	return q.name(int(hash.Sum32() % uint32(q.count()))) //nolint:gosec // a small positive number
}

// prepare stores the wanted number if it is not stored, before rows are written. It does not wait
// for another call that does the same.
func (q *queues) prepare(ctx context.Context) error {
	if q.count() >= q.want {
		return nil
	}
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
		return q.update(ctx)
	default:
		return nil
	}
}

// refresh reads the stored number from time to time. After an error the known number stays valid.
func (q *queues) refresh(ctx context.Context) error {
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
		return q.update(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// update reads the stored number and increases it to the wanted one. It does nothing if the last
// read was less than wait ago. The caller holds turn.
func (q *queues) update(ctx context.Context) error {
	now := q.now()
	if age := now.Sub(q.read); age >= 0 && age < q.wait {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	q.read, q.wait = now, countInterval
	if err := q.learn(ctx); err != nil {
		q.wait = countRetry
		return fmt.Errorf("read the number of queues: %w", explain(err, q.table))
	}
	return nil
}

func (q *queues) learn(ctx context.Context) error {
	stored, err := q.stored(ctx)
	if err != nil {
		return err
	}
	if stored > q.count() {
		q.known.Store(int64(stored))
	}
	// The known number was stored before. Perhaps the table was created again since.
	least := max(q.want, q.count())
	if stored >= least {
		return nil
	}
	if err := q.raise(ctx, least); err != nil {
		return err
	}
	q.known.Store(int64(least))
	return nil
}

func (q *queues) key() item { return item{pkey: textValue(q.process), skey: textValue(queuesRow)} }

func (q *queues) stored(ctx context.Context) (int, error) {
	out, err := q.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(q.table), Key: q.key()})
	if err != nil {
		return 0, err
	}
	if out.Item == nil {
		return 1, nil
	}
	if n, ok := out.Item[countAttribute].(*types.AttributeValueMemberN); ok {
		if count, err := strconv.Atoi(n.Value); err == nil && count > 0 && count <= maxQueues {
			return count, nil
		}
	}
	return 0, fmt.Errorf("row %q / %q has no %q from 1 to %d: correct it by hand", q.process, queuesRow, countAttribute, maxQueues)
}

// raise stores a number of at least n.
func (q *queues) raise(ctx context.Context, n int) error {
	_, err := q.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(q.table), Key: q.key(),
		UpdateExpression:          aws.String("SET #n = :n"),
		ConditionExpression:       aws.String("attribute_not_exists(#n) OR #n < :n"),
		ExpressionAttributeNames:  map[string]string{"#n": countAttribute},
		ExpressionAttributeValues: item{":n": &types.AttributeValueMemberN{Value: strconv.Itoa(n)}},
	})
	if isConditionFalse(err) { // another manager was faster
		return nil
	}
	return err
}
