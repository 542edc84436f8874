package subscriber_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// large is a payload for which the tail index of the packed layout has no room.
var large = bytes.Repeat([]byte("x"), 2<<10)

// readUnits returns the units of reads of events by key, of those that a Query finds and of those
// in batches. Reads of an index do not count.
func readUnits(recording *dynamotest.Recording) (queried, batches float64) {
	for _, c := range recording.Calls("Query", "BatchGetItem") {
		switch {
		case c.Index != "" || len(c.Tables) != 1 || c.Tables[0] != "journal":
		case c.Operation == "Query":
			queried += c.ReadUnits
		default:
			batches += c.ReadUnits
		}
	}
	return queried, batches
}

func TestAnEventOfThisProcessIsReadOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler time.Duration
		config  func(*subscriber.Config)
	}{
		"the handler is fast": {0, func(*subscriber.Config) {}},
		"the handler is slow": {300 * time.Millisecond, func(c *subscriber.Config) { c.MaxInFlight = 1000 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				const aggregates, each = 40, 5
				db := dynamotest.New(t)
				db.Inject(dynamotest.Latency(time.Millisecond, 4*time.Millisecond))
				db.Inject(dynamotest.DelayIndex(5*time.Millisecond, 50*time.Millisecond))
				j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Packed, Shards: 1})
				config := subscriber.Config{Journal: j, ConsumerGroup: "group"}
				c.config(&config)
				sub, messages := subscribe(t, config)
				eventually(t, "it is at the end of the tail", func() bool { return len(sub.Shards()) == 1 && sub.Shards()[0].CaughtUp })
				recording := db.Record()
				go func() {
					for n := range each {
						for a := range aggregates {
							testjournal.Append(t, j, storage.Commit{
								Aggregate: account(fmt.Sprint(a)), Expected: uint64(n), Proven: true, Events: []storage.Event{{Payload: large}},
							})
							time.Sleep(7 * time.Millisecond)
						}
					}
				}()
				handled := 0
				for handled < aggregates*each {
					msg := receive(t, messages)
					handled++
					time.AfterFunc(c.handler, func() { msg.Ack() })
				}
				time.Sleep(10 * time.Second)
				require.NoError(t, sub.Close())

				queried, batches := readUnits(recording)
				assert.LessOrEqual(t, queried+batches, float64(aggregates*each)*1.02)
			})
		})
	}
}
