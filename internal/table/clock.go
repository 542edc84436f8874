package table

import (
	"context"
	"fmt"
	"sync"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/millrace-dev/millrace/journal/journaltype"
)

// clock corrects the clock of this machine by the dates of DynamoDB's replies, which are in whole
// seconds. Each reply bounds how far DynamoDB's clock is ahead: DynamoDB dated it after the request
// was sent and before the reply came. The bounds of all replies together are narrower than a
// second. The clock applies the smallest correction that all bounds allow, which is none if 0 is
// within them.
type clock struct {
	mu sync.Mutex
	// ahead is how far DynamoDB's clock is ahead of this one, as known at asOf. It is unknown if
	// asOf is zero.
	ahead span
	asOf  time.Time
	// doubted is the intersection of the latest replies that contradict ahead. doubts is their
	// number.
	doubted span
	doubts  int
	offset  time.Duration // the correction of this machine's clock
	// floor is a time that DynamoDB's clock had reached at floorAsOf. It does not depend on what
	// this machine's clock shows, so it also holds when somebody has set that clock.
	floor, floorAsOf time.Time
}

// span is a range of durations.
type span struct{ from, to time.Duration }

func (s span) isEmpty() bool { return s.from > s.to }

func (s span) and(other span) span { return span{max(s.from, other.from), min(s.to, other.to)} }

const (
	// dateUnit is the resolution of times in HTTP replies. DynamoDB truncates its time to it.
	dateUnit = time.Second
	// driftDivisor means that two clocks may drift apart by 1/5000 of the time that passes, 200
	// ppm.
	driftDivisor = 5000
	// maxDoubts is the number of consecutive replies that must contradict the known range before it
	// is replaced. Somebody may have set a clock, but a single reply may also be wrong.
	maxDoubts = 3
)

// now returns the corrected time.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Round(0) drops the monotonic reading, which does not include the offset.
	return time.Now().Round(0).Add(c.offset)
}

// mayBeAhead returns how far the corrected clock can be ahead of DynamoDB's clock at most.
func (c *clock) mayBeAhead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset - c.ahead.from
}

// reached returns a time that DynamoDB's clock has certainly reached. It returns false if no reply
// had a date.
func (c *clock) reached() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.floorAt(time.Now()), !c.floorAsOf.IsZero()
}

// floorAt returns floor at a later time. Sub uses the monotonic reading of the times.
func (c *clock) floorAt(now time.Time) time.Time {
	passed := now.Sub(c.floorAsOf)
	return c.floor.Add(passed - passed/driftDivisor)
}

// raiseFloor takes the date of a reply. If the date shows that the floor is too high, DynamoDB's
// servers disagree, or its clock was set.
func (c *clock) raiseFloor(received, dated time.Time) {
	if floor := c.floorAt(received); !c.floorAsOf.IsZero() && floor.After(dated) && floor.Before(dated.Add(dateUnit)) {
		dated = floor
	}
	c.floor, c.floorAsOf = dated, received
}

// isDoubted reports whether the latest reply contradicts the known range.
func (c *clock) isDoubted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doubts > 0
}

// learn narrows the known range by the date of a reply.
func (c *clock) learn(sent, received, dated time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raiseFloor(received, dated)
	reply := span{dated.Sub(received), dated.Add(dateUnit).Sub(sent)}
	known := reply
	if !c.asOf.IsZero() {
		drift := received.Sub(c.asOf) / driftDivisor
		known = span{c.ahead.from - drift, c.ahead.to + drift}.and(reply)
	}
	if known.isEmpty() {
		if c.doubted = c.doubted.and(reply); c.doubts == 0 || c.doubted.isEmpty() {
			c.doubted, c.doubts = reply, 0
		}
		if c.doubts++; c.doubts < maxDoubts {
			return
		}
		known = c.doubted
	}
	c.ahead, c.asOf, c.doubts = known, received, 0
	c.offset = min(max(0, known.from), known.to)
}

// timed is a client that passes the dates of replies to the clock: those of the requests for each
// load, commit and read of the tail.
type timed struct {
	journaltype.Client
	clock *clock
}

func (t timed) GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	sent := time.Now()
	out, err := t.Client.GetItem(ctx, in, options...)
	if err == nil {
		t.learn(sent, out.ResultMetadata)
	}
	return out, err
}

func (t timed) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	sent := time.Now()
	out, err := t.Client.Query(ctx, in, options...)
	if err == nil {
		t.learn(sent, out.ResultMetadata)
	}
	return out, err
}

func (t timed) PutItem(ctx context.Context, in *dynamodb.PutItemInput, options ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	sent := time.Now()
	out, err := t.Client.PutItem(ctx, in, options...)
	if err == nil {
		t.learn(sent, out.ResultMetadata)
	}
	return out, err
}

func (t timed) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	sent := time.Now()
	out, err := t.Client.TransactWriteItems(ctx, in, options...)
	if err == nil {
		t.learn(sent, out.ResultMetadata)
	}
	return out, err
}

func (t timed) learn(sent time.Time, reply middleware.Metadata) {
	if dated, ok := awsmiddleware.GetServerTime(reply); ok {
		t.clock.learn(sent, time.Now(), dated)
	}
}

// Observe passes the reply to a request, and the time at which the request was sent, to the clock.
// Requests of the table itself do this already.
func (t *Table) Observe(sent time.Time, reply middleware.Metadata) {
	if t, ok := t.Client.(timed); ok {
		t.learn(sent, reply)
	}
}

// Ahead returns by how much the clock Settings.Now can be ahead of DynamoDB's clock, according to
// the measurements so far.
func (t *Table) Ahead() time.Duration {
	if t, ok := t.Client.(timed); ok {
		return t.clock.mayBeAhead()
	}
	return 0
}

// Reached returns a time that DynamoDB's clock has certainly reached, according to the latest
// reply. It does not depend on what this machine's clock shows. Dates of replies are in whole
// seconds, so the first results can be a second too early, and later ones some milliseconds. It
// returns false if replies have no dates, or if the settings had a clock of their own.
func (t *Table) Reached() (time.Time, bool) {
	if t, ok := t.Client.(timed); ok {
		return t.clock.reached()
	}
	return time.Time{}, false
}

// ConfirmClock calls read until the latest reply does not contradict the known difference of the
// clocks, so that Settings.Now is right if somebody has set this machine's clock. read makes one
// request. ConfirmClock makes none if the latest reply agrees, and six at most.
func (t *Table) ConfirmClock(ctx context.Context, read func(context.Context) error) error {
	client, ok := t.Client.(timed)
	if !ok {
		return nil
	}
	// Two replies confirm the latest one. Replies of servers that disagree may need more.
	for n := 0; n < 2*maxDoubts && client.clock.isDoubted(); n++ {
		if err := read(ctx); err != nil {
			return fmt.Errorf("read the time of DynamoDB: %w", err)
		}
	}
	return nil
}
