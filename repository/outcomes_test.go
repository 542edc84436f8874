package repository_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// This is a table of all outcomes of Execute, and of a Transaction with one participant. A cell of
// the table is a combination of what is stored, what is cached, the options of the call, what the
// decision does, and what happens meanwhile. The outcome of a cell follows from the rules of
// model.run.
func TestExecuteAndTransactionsEndAsTheTableSays(t *testing.T) {
	t.Parallel()
	// Data races do not depend on the cell, so the race detector watches every twelfth.
	every, first := 1, 0
	if testdb.Race {
		every, first = 12, rand.IntN(12) //nolint:gosec // a test draws
		t.Logf("every twelfth cell, from %d", first)
	}
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		for _, call := range []string{byExecute, byTransaction} {
			for _, incident := range incidents {
				t.Run(call+", "+incident, func(t *testing.T) {
					t.Parallel()
					testdb.WithFakeTime(t, func(t *testing.T) {
						s, cells, failed := newOutcomeStore(t, layout), 0, 0
						for c := range cellsOf(call, layout, incident) {
							if cells++; cells%every != first {
								continue
							}
							if !s.check(t, c, fmt.Sprint(cells)) {
								failed++
							}
							if failed == mostFailures {
								t.Fatal("the other cells did not run")
							}
						}
						require.Positive(t, cells)
						t.Logf("%d cells", cells)
					})
				})
			}
		}
	})
}

// mostFailures limits the failures that are reported for each call, layout and incident.
const mostFailures = 5

// Each reason for the end of a call is the outcome of some cell, and each rule excludes some cell.
func TestTheTableOfOutcomesHasACellForEachRule(t *testing.T) {
	t.Parallel()
	for _, call := range []string{byExecute, byTransaction} {
		ends, excluded := map[string]int{}, map[string]int{}
		for _, layout := range layouts {
			for _, incident := range incidents {
				for c := range everyCell(call, layout, incident) {
					if rule := c.impossible(); rule != "" {
						excluded[rule]++
					} else {
						ends[begin(c).run()]++
					}
				}
			}
		}
		require.Len(t, ends, 12, call)
		require.Len(t, excluded, 9, call)
		t.Log(call, ends, excluded)
	}
}

// outcome is what can be observed of a call, in words.
type outcome struct {
	end    string
	seen   []int  // the balances on which the decision ran
	result string // what the call returned
	stored string // what is stored afterwards
	struck bool   // the incident of the cell happened
}

// check reports whether the call of a cell has the outcome that the model predicts.
func (s *outcomeStore) check(t *testing.T, c cell, id string) bool {
	t.Helper()
	m := begin(c)
	want := m.outcome()
	got, err := s.observe(t, c, m, id)
	if got.end = want.end; !m.isEnd(want.end, id, err) {
		got.end = fmt.Sprint(err)
	}
	if reflect.DeepEqual(got, want) {
		return true
	}
	t.Errorf("%s:\n got %+v\nwant %+v\n err %v", c, got, want, err)
	return false
}

// outcome runs the model, and returns what it predicts.
func (m *model) outcome() outcome {
	o := outcome{end: m.run(), struck: m.struck}
	for _, version := range m.seen {
		o.seen = append(o.seen, m.at(version).State.Balance)
	}
	last := m.at(len(m.history))
	o.stored = describe(last, m.gone)
	switch {
	case o.end == endWritten:
		o.result = describe(last, false)
	case o.end == endUnchanged:
		o.result = describe(m.at(m.read), false)
	case o.end != endRepeated:
		o.result = noResult
	case m.asRead:
		o.result = describe(m.at(m.read), false) + again
	default:
		o.result = describe(last, m.gone) + again
	}
	return o
}

// at returns the aggregate at a version.
func (m *model) at(version int) (a repository.Aggregate[Account]) {
	for _, amount := range m.history[:version] {
		a.Version++
		a.State.Balance += amount
	}
	return a
}

const (
	noResult = "no result"
	again    = ", repeated"
)

func describe(a repository.Aggregate[Account], gone bool) string {
	if gone {
		a = repository.Aggregate[Account]{}
	}
	return fmt.Sprintf("balance %d at version %d", a.State.Balance, a.Version)
}

// isEnd reports whether an error is the one of an end, and of no other.
func (m *model) isEnd(end, id string, err error) bool {
	for _, kind := range []struct {
		ends []string
		is   bool
	}{
		{[]string{endWritten, endUnchanged, endRepeated}, err == nil},
		{[]string{endMismatch}, isAs(err, func(e *repository.CommandMismatchError) bool {
			return e.ID == account(id) && e.CommandID == id && e.CommitID != ""
		})},
		{[]string{endRefused}, isAs(err, func(e *repository.RefusedError) bool {
			return *e == repository.RefusedError{ID: account(id), Err: ErrInsufficientFunds}
		})},
		{[]string{endConflict, endAttempts}, isAs(err, func(e *journal.ConflictError) bool { return m.isConflict(end, id, e) })},
		{[]string{endAttempts}, isAs(err, func(e *repository.AttemptsError) bool { return e.Attempts == m.attempts() })},
		{[]string{endDeleted}, isAs(err, func(e *journal.DeletedError) bool { return e.ID == account(id) })},
		{[]string{endUnknown}, isAs(err, func(e *journal.OutcomeUnknownError) bool {
			return e.ID == account(id) && (e.CommandID != "") == (m.command != withoutID)
		})},
		{[]string{endWriteRefused}, isAs(err, func(e *journal.WriteRefusedError) bool { return e.ID == account(id) })},
		{[]string{endThrottled}, errors.Is(err, journal.ErrThrottled)},
		{[]string{endDenied}, errors.Is(err, journal.ErrAccess)},
	} {
		if kind.is != slices.Contains(kind.ends, end) {
			return false
		}
	}
	return true
}

func (m *model) isConflict(end, id string, e *journal.ConflictError) bool {
	isActual := int(e.Actual) == len(m.history)
	if m.incident == readsThrottled && m.layout == journal.Packed {
		isActual = isActual || e.Actual == 0 // it could not be read
	}
	isExpected := end == endAttempts || int(e.Expected) == m.expected
	return e.ID == account(id) && isActual && isExpected
}

func isAs[E error](err error, is func(E) bool) bool {
	var e E
	return errors.As(err, &e) && is(e)
}
