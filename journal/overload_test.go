package journal_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// perPartition is how many commits a second each partition takes in these tests.
const perPartition = 30

// load is a stream of commits, each to a new aggregate of a shard. It sends so many a second,
// whether or not earlier ones have ended, or each worker sends one after the other.
type load struct {
	shard, perSecond, workers int
}

// served is what came of a load.
type served struct {
	written, failed int
	latencies       []time.Duration // of those that were written
}

func (s *served) percentile(n int) time.Duration {
	slices.Sort(s.latencies)
	return s.latencies[(len(s.latencies)-1)*n/100]
}

// used is the time after which the tokens of the beginning are used.
const used = 6 * time.Second

// serve runs loads at the same time. It returns what came of each in some seconds after others, and
// the number of requests for all of them.
func serve(t *testing.T, db *dynamotest.DB, after, lasting time.Duration, loads ...load) (all []*served, requests int) {
	t.Helper()
	db.Inject(dynamotest.Latency(2*time.Millisecond, 6*time.Millisecond))
	j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Packed, Shards: len(loads)}).Internal()
	begin := time.Now().Add(after)
	end := begin.Add(lasting)
	var mu sync.Mutex
	defer db.Observe(func(c dynamotest.Call) {
		mu.Lock()
		defer mu.Unlock()
		if c.Operation == "PutItem" && time.Now().After(begin) && time.Now().Before(end) {
			requests++
		}
	})()
	n := 0
	next := func(shard int) aggregate.ID {
		mu.Lock()
		defer mu.Unlock()
		for {
			if n++; j.Shard(user(fmt.Sprint(n))) == shard {
				return user(fmt.Sprint(n))
			}
		}
	}
	var running sync.WaitGroup
	start := func(do func()) {
		running.Add(1)
		go func() {
			defer running.Done()
			do()
		}()
	}
	for _, l := range loads {
		s := &served{}
		all = append(all, s)
		send := func() {
			sent := time.Now()
			_, err := j.Append(context.Background(), storage.Commit{Aggregate: next(l.shard), Events: events(1, 1)})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case time.Now().Before(begin) || time.Now().After(end):
			case err == nil:
				s.written++
				s.latencies = append(s.latencies, time.Since(sent))
			case assert.ErrorIs(t, err, journal.ErrThrottled):
				s.failed++
			}
		}
		for range l.workers {
			start(func() {
				for time.Now().Before(end) {
					send()
				}
			})
		}
		if l.perSecond > 0 {
			start(func() {
				for time.Now().Before(end) {
					start(send)
					time.Sleep(time.Second / time.Duration(l.perSecond))
				}
			})
		}
	}
	running.Wait()
	for i, s := range all {
		t.Logf("%+v: %d written, %d failed, latency p50 %s p99 %s", loads[i], s.written, s.failed, s.percentile(50), s.percentile(99))
	}
	t.Logf("%d requests", requests)
	return all, requests
}

func TestCommitsBeyondTheCapacityAreSentFewTimes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		load     load
		most     float64 // requests for each success
		failures int
	}{
		"at three times the capacity":       {load{perSecond: 3 * perPartition}, 6, 700},
		"at 1.25 times the capacity":        {load{perSecond: 5 * perPartition / 4}, 3.5, 80},
		"a caller that is alone":            {load{workers: 1}, 3, 0},
		"as many callers as commits":        {load{workers: perPartition}, 3, 20},
		"ten times as many callers as that": {load{workers: 10 * perPartition}, 6, 700},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				db := dynamotest.New(t, dynamotest.WithPartitionLimits(perPartition, 0))

				all, requests := serve(t, db, used, 10*time.Second, c.load)

				assert.GreaterOrEqual(t, all[0].written, 10*perPartition*97/100, "all of the capacity is used")
				assert.LessOrEqual(t, float64(requests)/float64(all[0].written), c.most, "requests for each success")
				assert.LessOrEqual(t, all[0].failed, c.failures)
			})
		})
	}
}

func TestATableThatThrottlesAFifthOfItsRequestsIsHardlySlower(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		db.Inject(dynamotest.Throttle(), dynamotest.On("PutItem"), dynamotest.Chance(0.2))

		all, requests := serve(t, db, time.Second, 4*time.Second, load{shard: 0, workers: 2}, load{shard: 1, workers: 2})

		written := all[0].written + all[1].written
		assert.InDelta(t, 1.25, float64(requests)/float64(written), 0.05)
		for _, s := range all {
			// An attempt takes 4 ms, and the first pauses take 5 and 7.5 ms.
			assert.Greater(t, s.written, 1050)
			assert.Zero(t, s.failed)
		}
	})
}

func TestOneHotPartitionDoesNotSlowTheOthers(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t, dynamotest.WithPartitionLimits(perPartition, 0))
		db.Inject(dynamotest.Throttle(), dynamotest.On("PutItem"), dynamotest.Chance(0.2))

		all, requests := serve(t, db, used, 10*time.Second, load{shard: 0, perSecond: 6 * perPartition}, load{shard: 1, perSecond: 20}, load{shard: 2, perSecond: 20})

		for _, s := range all[1:] {
			assert.Greater(t, s.written, 190)
			assert.Less(t, s.percentile(99), 100*time.Millisecond)
		}
		assert.Greater(t, all[0].written, 10*perPartition*9/10)
		assert.Less(t, requests, 10*(6+2)*perPartition+3*400, "the hot one gets none of the tokens of the others")
	})
}

func TestACallerGoesOnSoonAfterAnOutageOfCapacity(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		outage := db.Inject(dynamotest.Throttle(), dynamotest.On("PutItem"))
		time.AfterFunc(used-100*time.Millisecond, outage.Remove)

		all, _ := serve(t, db, used, time.Second, load{workers: 4})

		// An attempt takes 4 ms.
		assert.Greater(t, all[0].written, 4*200)
	})
}
