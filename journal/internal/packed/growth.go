package packed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// The tail index has one partition for each shard at first. It can grow to twice as many, four
// times as many and so on. A shard then has several partitions: those whose number modulo the
// number of shards is the shard. Events stay where they are. The descriptor holds the time from
// which writers use new partitions, which is growthGrace after the change. Readers must read a
// partition from its first event. So they read the descriptor again every minute, and do not read
// the tail if their information is older than mostUnchecked. Therefore a partition that they do not
// know has no events.
const (
	growthGrace   = 10 * time.Minute
	mostUnchecked = 5 * time.Minute
	mostUnwatched = 2 * time.Minute // for writers, which learn of a restore from the descriptor
	checkEvery    = time.Minute
	checkTimeout  = 2 * time.Second
	checkPause    = time.Second // after a read that failed
)

// partitions holds the information of a process about the partitions of the tail.
type partitions struct {
	mu       sync.Mutex
	reading  chan struct{}      // closed at the end of the current read of the descriptor
	cancel   context.CancelFunc // of that read
	failure  error              // of the last read
	failedAt time.Time
	growths  []engine.Growth
	asOf     moment
	// restored is the mark of restores in the descriptor at the time when the journal was opened.
	restored string
	stale    bool // whether the tables were restored since
}

// moment is a time on two clocks. The first one stands still while the machine is suspended, and
// somebody may set the second one.
type moment struct{ machine, wall time.Time }

func (p *layout) Opened(d engine.Descriptor, asOf time.Time) {
	p.compresses = d.Format >= engine.CompressedFormat
	p.tailing.restored = d.Restored
	p.tailing.learn(d.Growths, d.Restored, moment{asOf, p.Config.Now().Add(-time.Since(asOf))})
}

func (t *partitions) learn(growths []engine.Growth, restored string, asOf moment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.growths, t.asOf = growths, asOf
	t.stale = t.stale || restored != t.restored
}

// isStale reports whether the tables were restored since the journal was opened.
func (t *partitions) isStale() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stale
}

func (t *partitions) all() []engine.Growth {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.growths
}

// known returns the known growths, and the age of this information at a time of Config.Now.
func (p *layout) known(now time.Time) ([]engine.Growth, time.Duration) {
	t := &p.tailing
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.growths, max(time.Since(t.asOf.machine), now.Sub(t.asOf.wall))
}

// check reads the descriptor again in the background if the information is older than checkEvery.
// It waits for the read only if the information is older than patience, and returns the error of
// the read. A read that is under way may have begun long ago, if the process was suspended. So
// check may have to wait for a second read.
func (p *layout) check(ctx context.Context, patience time.Duration) error {
	for range 2 {
		_, age := p.known(p.Config.Now())
		if age < checkEvery {
			return nil
		}
		done, failure := p.tailing.begin(ctx, p.learnGrowth)
		switch {
		case age < patience:
			return nil
		case done == nil:
			return failure
		}
		select {
		case <-done:
			if failure = p.tailing.failed(); failure != nil {
				return failure
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// begin starts a read of the descriptor unless one is under way. It returns a channel that is
// closed when the read ends. Shortly after a failed read it returns nil and the error of that read.
func (t *partitions) begin(ctx context.Context, read func(context.Context) error) (done <-chan struct{}, failure error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reading != nil {
		return t.reading, nil
	}
	if t.failure != nil && time.Since(t.failedAt) < checkPause {
		return nil, t.failure
	}
	reading := make(chan struct{})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	t.reading, t.cancel = reading, cancel
	go func() {
		defer cancel()
		err := read(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.reading, t.failure, t.failedAt = nil, err, time.Now()
		close(reading)
	}()
	return reading, nil
}

func (p *layout) AwaitReads(ctx context.Context) {
	t := &p.tailing
	t.mu.Lock()
	reading, cancel := t.reading, t.cancel
	t.mu.Unlock()
	if reading == nil {
		return
	}
	defer context.AfterFunc(ctx, cancel)()
	<-reading
}

// failed returns the error of the last read.
func (t *partitions) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failure
}

// knowPartitions ensures that a reader knows all partitions that writers may use.
func (p *layout) knowPartitions(ctx context.Context) error {
	err := p.check(ctx, mostUnchecked)
	if _, age := p.known(p.Config.Now()); err != nil && age >= mostUnchecked {
		return fmt.Errorf("learn of new partitions of the tail: %w", err)
	}
	return nil
}

func (p *layout) learnGrowth(ctx context.Context) error {
	asOf := moment{time.Now(), p.Config.Now()}
	it, err := p.GetItem(ctx, p.Config.Tables.Journal, p.DescriptorKey())
	if dynamo.IsContext(err) { // it is the context of begin, not that of a caller
		err = fmt.Errorf("%w: the descriptor could not be read within %s", journaltype.ErrUnavailable, checkTimeout)
	}
	if err != nil {
		return err
	}
	growths, ok := engine.GrowthsOf(it)
	if !ok {
		return p.corrupt(p.Config.Tables.Journal, it, "does not say how the tail has grown")
	}
	restored, _ := table.StringOf(it[engine.AttrRestored])
	p.tailing.learn(growths, restored, asOf)
	return nil
}

// tailPart returns the tail partition of an item that an aggregate stores at a time.
func (p *layout) tailPart(id aggregate.ID, at time.Time) int {
	growths, _ := p.known(at)
	return p.Config.Resolver.Shard(id, p.partsAt(growths, at.UnixMilli()))
}

// partsAt returns the number of partitions that writers use at a time.
func (p *layout) partsAt(growths []engine.Growth, millis int64) int {
	parts := p.Config.Shards
	for _, g := range growths {
		if g.Since <= millis {
			parts = g.Parts
		}
	}
	return parts
}

// tailParts returns the partitions of a shard, including those that writers do not use yet.
func (p *layout) tailParts(shard int) []int {
	growths := p.tailing.all()
	var parts []int
	for part := shard; part < p.partsAt(growths, math.MaxInt64); part += p.Config.Shards {
		parts = append(parts, part)
	}
	return parts
}

func (p *layout) TailFactor(ctx context.Context) (int, error) {
	err := p.knowPartitions(ctx)
	return len(p.tailParts(0)), err
}

func (p *layout) Grow(ctx context.Context, to int) (since time.Time, err error) {
	name := p.Config.Tables.Journal
	it, err := p.GetItem(ctx, name, p.DescriptorKey())
	if err != nil {
		return since, err
	}
	growths, ok := engine.GrowthsOf(it)
	if !ok {
		return since, p.corrupt(name, it, "does not say how the tail has grown")
	}
	now := p.Config.Now()
	if err := p.checkGrowth(growths, to, now); err != nil {
		return since, err
	}
	since = now.Add(growthGrace).Truncate(time.Millisecond)
	update := &dynamodb.UpdateItemInput{
		TableName: &name, Key: p.DescriptorKey(),
		UpdateExpression:         aws.String("SET #g = :new"),
		ConditionExpression:      aws.String("attribute_exists(#pk) AND attribute_not_exists(#g)"),
		ExpressionAttributeNames: table.AttributeNames("#g", engine.AttrGrowths, "#pk", p.Config.Attributes.PartitionKey),
		ExpressionAttributeValues: table.Item{
			":new": engine.GrowthsValue(append(growths[:len(growths):len(growths)], engine.Growth{Parts: to, Since: since.UnixMilli()})),
		},
	}
	if len(growths) > 0 {
		update.ConditionExpression = aws.String("attribute_exists(#pk) AND #g = :old")
		update.ExpressionAttributeValues[":old"] = it[engine.AttrGrowths]
	}
	err = p.UpdateItem(ctx, update)
	if errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return since, &journaltype.ConfigError{Field: "partitions", Reason: "were changed by another process at the same time: read Journal.TailPartitions and decide again"}
	}
	return since, dynamo.Explain(err, name)
}

// checkGrowth returns an error if to is not an allowed number of partitions, or if the last growth
// has not taken effect yet.
func (p *layout) checkGrowth(growths []engine.Growth, to int, now time.Time) error {
	from := p.partsAt(growths, math.MaxInt64)
	refuse := func(format string, args ...any) error {
		return &journaltype.ConfigError{Field: "partitions", Reason: fmt.Sprintf(format, args...)}
	}
	factor := to / p.Config.Shards
	switch {
	case to <= from:
		return refuse("are %d already, and cannot become %d: the tail only grows", from, to)
	case to%p.Config.Shards != 0 || factor&(factor-1) != 0:
		return refuse("cannot become %d: their number is %d, the number of shards, times a power of two", to, p.Config.Shards)
	case to > table.MaxShards:
		return refuse("cannot become %d: there are at most %d", to, table.MaxShards)
	}
	if n := len(growths); n > 0 {
		if since := time.UnixMilli(growths[n-1].Since); now.Before(since.Add(growthGrace)) {
			return refuse("become %d at %s: let them grow again after %s", growths[n-1].Parts, since.UTC().Format(time.RFC3339), since.Add(growthGrace).UTC().Format(time.RFC3339))
		}
	}
	return nil
}
