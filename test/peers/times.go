package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
)

// times has the measured times by operation, contender, size and round. Without times the store
// cannot do it.
type times struct {
	contenders []contender
	took       [][][][]time.Duration
}

// warmup is the number of rounds before those that count. Node compiles what runs often.
const warmup = 100

// measureTimes performs each operation in rounds. In each round every store has a turn, and a
// different one begins.
func measureTimes(ctx context.Context, endpoint string, contenders []contender, rounds int) (*times, error) {
	key := rand.Text()
	db := database{client: dynamolocal.NewClient(endpoint, key), endpoint: endpoint, accessKeyID: key}
	stores, err := openStores(ctx, db, contenders)
	if err != nil {
		return nil, err
	}
	t := &times{contenders: contenders}
	for number, o := range operations {
		took := make([][][]time.Duration, len(stores))
		for i := range took {
			took[i] = make([][]time.Duration, len(sizes))
		}
		for k, size := range sizes {
			for round := range warmup + rounds {
				for turn := range stores {
					i := (turn + round) % len(stores)
					if o.once || o.snapshots && !contenders[i].snapshots {
						continue
					}
					one, err := measure(ctx, o, newWork(stores[i], "", size), number, round)
					if err != nil {
						return nil, fmt.Errorf("%s: %s: %w", contenders[i].name, o.name, err)
					}
					if round >= warmup {
						took[i][k] = append(took[i][k], one)
					}
				}
			}
		}
		t.took = append(t.took, took)
	}
	return t, nil
}

// measure performs an operation. One that creates its aggregate has another one in each round. The
// others share an aggregate, which the first round prepares.
func measure(ctx context.Context, o operation, w work, number, round int) (time.Duration, error) {
	w.id = nameOf(number, w.size, round)
	if o.prepare != nil {
		w.id = nameOf(number, w.size, 0)
		if round == 0 {
			if err := o.prepare(ctx, w); err != nil {
				return 0, err
			}
		}
	}
	return o.run(ctx, w)
}

// table has the median times of packed, and the medians of each other store's ratios to it.
func (t *times) table() string {
	return table(t.contenders, func(row, column int) string {
		var parts []string
		for k, took := range t.took[row][column] {
			if len(took) == 0 {
				return ""
			}
			if column == 0 {
				parts = append(parts, fmt.Sprintf("%.1f ms", float64(median(took))/float64(time.Millisecond)))
				continue
			}
			ratios := make([]float64, len(took))
			for round := range took {
				ratios[round] = float64(took[round]) / float64(t.took[row][0][k][round])
			}
			parts = append(parts, fmt.Sprintf("%.2f", median(ratios)))
		}
		return strings.Join(parts, " / ")
	})
}

func median[N time.Duration | float64](values []N) N {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
