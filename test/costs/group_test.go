package costs

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

var group = checkpoint.Key{Group: "order-history", Topic: "document"}

// membership returns the table of the cost of a member, by the number of shards and members.
func membership(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| shards, up to | members, up to | the first joins | a heartbeat | a shard changes hands |\n|---|---|---|---|---|\n")
	for _, shards := range []int{64, 256, 1024} {
		for _, members := range []int{8, 50, 200} {
			w := world{t: t, db: dynamotest.New(t)}
			w.j = testjournal.New(t, w.db.Client(), journal.Config{Layout: journal.Classic, Shards: shards})
			store := checkpoint.New(w.j)
			now := time.Date(2025, 6, 1, 12, 0, 0, 123e6, time.UTC)
			// one is the entry of a member when it joins.
			one := checkpoint.Member{Token: 1 << 62, Lease: 10 * time.Second, Heartbeat: checkpoint.NextHeartbeat(0, now, 10*time.Second)}
			current := checkpoint.NewMembership(shards, time.Time{})
			change := func(next checkpoint.Membership) bill {
				return w.bill(func(ctx context.Context) (err error) {
					current, err = store.ChangeMembership(ctx, group, current, next)
					return err
				})
			}
			next, first := current.Join(one)
			take, _ := next.Share(first)
			joins := change(next.Take(first, take))
			for range members - 1 {
				next, _ = current.Join(one)
				change(next)
			}
			for range 1_000 { // high epochs take more bytes of the row
				current = current.Take(first, []int{0})
			}
			change(current)
			heartbeat := w.bill(func(ctx context.Context) error {
				_, err := store.Heartbeat(ctx, group, current, first, checkpoint.NextHeartbeat(one.Heartbeat, now, one.Lease))
				return err
			})
			hands := change(current.Release(first, []int{0}))
			second := change(current.Take(current.Joined, []int{0}))
			fmt.Fprintf(&b, "| %d | %d | %g | %g | %g |\n", shards, members, joins.write, heartbeat.write, hands.write+second.write)
		}
	}
	return b.String()
}

// reconciliations measures the reconciliation of 1,000 heads with positions, in one shard.
func reconciliations(t *testing.T) string {
	t.Helper()
	const aggregates = 1_000
	var b strings.Builder
	b.WriteString(header([]string{"state KB"}, "round trips", "read units"))
	for _, state := range stateSizes[:2] {
		fmt.Fprintf(&b, "| %s |", kb(state))
		for _, layout := range layouts {
			db := dynamotest.New(t)
			require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 1, Layout: layout}))
			j := testjournal.Open(t, db.Client(), journal.Config{Layout: layout})
			w := world{t, db, j}
			store := checkpoint.New(j)
			shard := checkpoint.Shard{Group: checkpoint.Group{Name: group.Group}, Topic: group.Topic}
			for n := range aggregates {
				of := aggregate.ID{Type: "document", Value: fmt.Sprintf("%s-%d", id[:30], 10_000+n)}
				testjournal.Append(t, j, storage.Commit{
					Aggregate: of, Events: []storage.Event{{Type: "written"}}, Snapshot: &journal.Snapshot{Number: 1, Payload: []byte(text[:state])},
				})
				require.NoError(t, store.Advance(t.Context(), shard.Group, of, 1, 0, 1))
			}
			bill := w.bill(func(ctx context.Context) error {
				found := 0
				for page, err := range store.AggregateProgress(ctx, shard, aggregate.ID{}, nil) {
					if err != nil {
						return err
					}
					found += len(page)
				}
				if found != aggregates {
					return fmt.Errorf("found %d", found)
				}
				return nil
			})
			fmt.Fprintf(&b, " %d | %g |", bill.trips, bill.read)
		}
		b.WriteString("\n")
	}
	return b.String()
}
