package projection_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// TestRowsAreRightInAStorm starts, stops and kills members of a group in a storm of faults, and
// deletes rows. Sometimes it kills all, resets the group, and continues with another release, which
// keeps totals in another attribute. Whenever a row is read, its total is that of the events up to
// its number, and it has no other. In the end all events are applied.
func TestRowsAreRightInAStorm(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		for seed := range testdb.Seeds(3) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				testdb.WithFakeTime(t, func(t *testing.T) { runRowStorm(t, layout, seed, false) })
			})
		}
	})
}

// Rows of states may show later events than their numbers say, and some members begin with the last
// events.
func TestRowsOfStatesAreRightInAStorm(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		for seed := range testdb.Seeds(3) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				testdb.WithFakeTime(t, func(t *testing.T) { runRowStorm(t, layout, seed, true) })
			})
		}
	})
}

type rowStorm struct {
	*world
	random  *rand.Rand
	started uint64
	members []stormMember
	written map[string]int
	release int            // the number of resets
	states  bool           // rows are computed from states
	killed  sync.WaitGroup // processes that have not ended yet
}

// stormMember is a process of the group.
type stormMember struct {
	kill  func()
	close func()
}

func runRowStorm(t *testing.T, layout journal.Layout, seed uint64, states bool) {
	s := &rowStorm{states: states, world: setupOn(t, dynamotest.New(t).Client(), layout), random: rand.New(rand.NewPCG(seed, 1)), written: map[string]int{}}
	defer func() {
		for _, m := range s.members {
			m.close()
		}
		s.killed.Wait()
	}()
	for range 60 {
		s.step()
		s.verify()
		time.Sleep(time.Duration(s.random.IntN(400)) * time.Millisecond)
	}
	for len(s.members) > 0 {
		s.stop(func(m stormMember) { m.close() })
	}
	s.start(0)
	eventually(t, "all events are applied", func() bool {
		s.verify()
		for id := range s.written {
			if !s.isDone(id) {
				return false
			}
		}
		return true
	})
}

func (s *rowStorm) step() {
	id := fmt.Sprint("a", s.random.IntN(6))
	switch chance := s.random.IntN(100); {
	case chance < 40:
		n := 1 + s.random.IntN(12)
		var events []event
		for i := range n {
			events = append(events, Deposited{s.written[id] + i + 1})
		}
		s.write(id, s.written[id], events...)
		s.written[id] += n
	case chance < 60:
		if len(s.members) < 3 {
			s.start(0.04)
		}
	case chance < 80:
		s.stop(func(m stormMember) { m.kill() })
	case chance < 88:
		s.stop(func(m stormMember) { m.close() })
	case chance < 94:
		s.delete(id)
	default:
		for len(s.members) > 0 {
			s.stop(func(m stormMember) { m.kill() })
		}
		err := groups.Of(s.j, "totals", topic).Reset(s.t.Context(), subscriber.Beginning(), nil)
		if err == nil {
			s.release++
		} else {
			require.ErrorIs(s.t, err, groups.ErrNoGroup)
		}
	}
}

func (s *rowStorm) stop(how func(stormMember)) {
	if len(s.members) == 0 {
		return
	}
	i := s.random.IntN(len(s.members))
	how(s.members[i])
	s.members = append(s.members[:i:i], s.members[i+1:]...)
}

// start starts a member that meets faults with a chance at each request.
func (s *rowStorm) start(chance float64) {
	s.started++
	proxy := dynamotest.NewProxy(s.t, s.client, dynamotest.WithSeed(s.started))
	j := testjournal.Open(s.t, proxy.Client(), journal.Config{})
	if chance > 0 {
		proxy.Storm(chance)
	}
	rows := s.rows(proxy.Client())
	if s.states {
		rows = s.rowsOfStates(proxy.Client(), j)
	}
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		LatestOnly: s.states && s.random.IntN(4) > 0,
		Journal:    j, ConsumerGroup: "totals", Positions: rows, MaxInFlight: 8, AckDeadline: time.Second, CloseTimeout: time.Second,
		MaxNackResendSleep: 200 * time.Millisecond,
		Timing:             subscriber.Timing{LeaseDuration: time.Second, ReconcileInterval: 2 * time.Second, TrailingDelay: time.Second},
	}, watermill.NopLogger{})
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(s.t.Context())
	messages, err := sub.Subscribe(ctx, topic)
	if err != nil {
		cancel()
		return
	}
	go func() {
		for msg := range messages {
			go func(msg *message.Message) {
				if rows.Handle(msg) == nil {
					msg.Ack()
				} else {
					msg.Nack()
				}
			}(msg)
		}
	}()
	end := func() {
		cancel()
		_ = sub.Close()
	}
	s.members = append(s.members, stormMember{close: end, kill: func() {
		proxy.Close()
		s.killed.Add(1)
		go func() {
			defer s.killed.Done()
			end()
		}()
	}})
}

// total is the attribute of a release.
func (s *rowStorm) total(release int) string { return fmt.Sprint("total", release) }

// rows returns a projection that handles single events or runs.
func (s *rowStorm) rows(client projection.RowClient) *projection.Rows {
	total, config := s.total(s.release), projection.Config{MaxRun: 1 + s.random.IntN(8), RetryBudget: time.Second}
	update := func(amount int) projection.RowUpdate {
		return projection.RowUpdate{Expression: "ADD " + total + " :a", Values: item{":a": number(amount)}}
	}
	var rows *projection.Rows
	var err error
	if s.random.IntN(2) == 0 {
		rows, err = projection.NewRows(client, totals, config, projection.OnRow(
			func(_ context.Context, e Deposited, _ *journal.Record) (projection.RowUpdate, error) {
				return update(e.Amount), nil
			}))
	} else {
		rows, err = projection.NewBatchRows(client, totals, config,
			func(_ context.Context, sum int, _ projection.Run) (projection.RowUpdate, error) {
				return update(sum), nil
			},
			projection.Fold(func(sum *int, e Deposited, _ *journal.Record) error { *sum += e.Amount; return nil }))
	}
	require.NoError(s.t, err)
	return rows
}

func (s *rowStorm) rowsOfStates(client projection.RowClient, j *journal.Journal) *projection.Rows {
	total, config := s.total(s.release), projection.Config{MaxRun: 1 + s.random.IntN(8), RetryBudget: time.Second}
	rows, err := projection.NewRows(client, totals, config, projection.OnState(testjournal.Repository(s.t, j, sums, repository.Config{}),
		func(_ context.Context, a repository.Aggregate[int]) (projection.RowUpdate, error) {
			return projection.RowUpdate{Expression: "SET " + total + " = :t", Values: item{":t": number(a.State)}}, nil
		}))
	require.NoError(s.t, err)
	return rows
}

// verify compares the content of each row with its number.
func (s *rowStorm) verify() {
	s.t.Helper()
	for id := range s.written {
		row := s.row(id)
		resets, n := numberOf(s.t, row["millrace_resets"]), numberOf(s.t, row["millrace_number"])
		for release := range s.release + 1 {
			want := 0
			if release == resets {
				for s.states && n > 0 && n < s.written[id] && numberOf(s.t, row[s.total(release)]) > n*(n+1)/2 {
					n++
				}
				want = n * (n + 1) / 2
			}
			require.Equal(s.t, want, numberOf(s.t, row[s.total(release)]), "%s at %d of release %d: release %d", id, n, resets, release)
		}
	}
}

// isDone reports whether a row has applied all events in the current release.
func (s *rowStorm) isDone(id string) bool {
	row := s.row(id)
	return numberOf(s.t, row["millrace_resets"]) == s.release && numberOf(s.t, row["millrace_number"]) == s.written[id]
}

// numberOf returns the value of an attribute, 0 if there is none.
func numberOf(t *testing.T, v types.AttributeValue) (n int) {
	t.Helper()
	if number, ok := v.(*types.AttributeValueMemberN); ok {
		var err error
		n, err = strconv.Atoi(number.Value)
		require.NoError(t, err)
	}
	return n
}
