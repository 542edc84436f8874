package repository_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// Several processes use each command id for two contents, while requests fail, replies are lost,
// and requests arrive late. Each id takes effect for one content. The calls with that content
// succeed, and those with the other one fail.
func TestUnderFaultsACommandIDIsForOneContent(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		for seed := range testdb.Seeds(24) {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				t.Parallel()
				testdb.WithFakeTime(t, func(t *testing.T) { useIDsTwice(t, layout, seed) })
			})
		}
	})
}

// contents are what the commands of the test contain. The event of a command has its id and
// content.
var contents = []string{"one", "other"}

// usage is the use of a command id with a content.
type usage struct{ how, aggregate, id, content string }

const (
	executes = "Execute"
	saves    = "Save"
	joins    = "Transaction"
)

func (u usage) note() Noted { return Noted{u.id + ": " + u.content} }

func useIDsTwice(t *testing.T, layout journal.Layout, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	db := dynamotest.New(t, dynamotest.WithSeed(seed))
	s := openOn(t, db, journal.Config{Layout: layout})
	first := s.accounts(t, repository.Config{})
	if random.IntN(2) == 0 {
		for n := range 130 { // so that the packed layout has guards
			mustExecute(t, first, "a", Deposit(1), repository.WithCommandID(fmt.Sprint("earlier ", n)))
		}
	}
	var usages []usage
	for _, how := range []string{executes, saves, joins} {
		for n := range 4 {
			for _, content := range contents {
				usages = append(usages, usage{how, []string{"a", "b"}[n%2], fmt.Sprint(how, n), content})
			}
		}
	}
	calm := db.Storm(0.1)
	late := db.Inject(dynamotest.LateBy(0, 3*time.Second), dynamotest.On("PutItem", "TransactWriteItems"), dynamotest.Chance(0.1))
	var mu sync.Mutex
	ends := map[usage][]error{}
	var processes sync.WaitGroup
	for n := range 3 {
		config := []repository.Config{{}, {Cache: 10}, {Snapshots: repository.Every(3)}}[n]
		j := testjournal.Open(t, db.Client(testdb.Once), journal.Config{RetryBudget: time.Second})
		accounts := testjournal.Repository(t, j, Accounts, config)
		own := slices.Clone(usages)
		random.Shuffle(len(own), func(i, k int) { own[i], own[k] = own[k], own[i] })
		processes.Add(1)
		go func() {
			defer processes.Done()
			for _, u := range own {
				err := u.call(t, accounts)
				mu.Lock()
				ends[u] = append(ends[u], err)
				mu.Unlock()
			}
		}()
	}
	processes.Wait()
	late.Arrive()
	late.Remove()
	calm()

	before := s.effects(t, "a")
	maps.Copy(before, s.effects(t, "b"))
	succeeded, mismatched := 0, 0
	for _, u := range usages {
		all := ends[u]
		isFor := slices.Contains(before[u.id], u.content)
		if len(before[u.id]) > 0 {
			err := u.call(t, first)
			assert.Equal(t, isFor, err == nil, "%v: %v, effects %v", u, err, before[u.id])
			all = append(all, err)
		}
		for _, err := range all {
			switch {
			case err == nil:
				succeeded++
				assert.True(t, isFor, "%v, effects %v", u, before[u.id])
			case errors.As(err, new(*repository.CommandMismatchError)):
				mismatched++
				assert.True(t, !isFor && len(before[u.id]) > 0, "%v: %v, effects %v", u, err, before[u.id])
			}
		}
	}
	for _, aggregate := range []string{"a", "b"} {
		for id, contents := range s.effects(t, aggregate) {
			assert.Len(t, contents, 1, "%s of %s", id, aggregate)
		}
	}
	assert.Positive(t, succeeded)
	assert.Positive(t, mismatched)
	t.Logf("%d calls, %d succeeded, %d with another content", 4*len(usages), succeeded, mismatched)
}

// call uses the id. A conflict of Save is repeated as an application does.
func (u usage) call(t *testing.T, accounts *repository.Repository[Account]) (err error) {
	switch u.how {
	case executes:
		_, err = accounts.Execute(t.Context(), u.aggregate, always[Account](u.note()), request(u.id, u.content)...)
	case saves:
		for range 20 {
			var a repository.Aggregate[Account]
			if a, err = accounts.Load(t.Context(), u.aggregate); errors.Is(err, journal.ErrNotFound) {
				a, err = accounts.NewAggregate(u.aggregate)
			}
			if err == nil {
				_, err = accounts.Save(t.Context(), a, Events{u.note()}, request(u.id, u.content)...)
			}
			if err == nil || errors.As(err, new(*repository.CommandMismatchError)) {
				return err
			} else if errors.As(err, new(*journal.DuplicateCommandError)) {
				return nil
			}
		}
	case joins:
		var tx repository.Transaction
		a, b := accounts.AddTo(&tx, "a"), accounts.AddTo(&tx, "b")
		err = tx.Execute(t.Context(), func() error {
			a.Append(u.note())
			b.Append(u.note())
			return nil
		}, request(u.id, u.content)...)
	}
	return err
}

// effects returns the contents of each command id, in the events of an aggregate.
func (s store) effects(t *testing.T, id string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, r := range s.records(t, account(id)) {
		event, err := Accounts.Decode(r.EventType, r.Payload)
		require.NoError(t, err)
		if noted, ok := event.(Noted); ok {
			command, content, _ := strings.Cut(noted.Text, ": ")
			all[command] = append(all[command], content)
		}
	}
	return all
}
