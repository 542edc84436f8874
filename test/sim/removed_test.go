package sim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/test/campaign"
)

// aggregate returns the stream of the scene's aggregate without a group.
func (s scene) aggregate() stream { return stream{topic: s.s.topic, id: s.s.id} }

func (s scene) heads(head uint64) map[stream]uint64 { return map[stream]uint64{s.aggregate(): head} }

func TestTheOracleForgivesAMemberThatPassesOverWhatWasRemoved(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.remove(s.aggregate(), 4)
	s.handle(s.a, 2)
	s.handle(s.a, 4)
	// Member b has also passed over the removed events before event 4.
	s.handle(s.b, 4)
	s.store(s.a, s.s, 4, true)
	assert.Empty(t, s.findings)
	s.remove(s.aggregate(), 9)
	s.store(s.a, s.s, 8, true)
	assert.Empty(t, s.findings)
	s.compareStored([]string{"g"}, s.heads(8), map[stream]uint64{s.s: 8})
	assert.Empty(t, s.findings)
}

func TestTheOracleFindsAMemberThatPassesOverMoreThanWasRemoved(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.remove(s.aggregate(), 4)
	s.handle(s.a, 5)
	assert.Equal(t, []campaign.Kind{Reordered}, s.kinds())
	s.store(s.b, s.s, 4, true)
	assert.Equal(t, []campaign.Kind{Reordered, Moved}, s.kinds())
}

func TestTheOracleFindsAMemberThatPassesOverWhatWasNotRemovedInTheEnd(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.remove(s.aggregate(), 4)
	s.remove(s.aggregate(), 3)
	s.retract(s.aggregate(), 4)
	s.handle(s.a, 4)
	assert.Equal(t, []campaign.Kind{Reordered}, s.kinds())
}

func TestTheOracleExpectsWhatWasNotRemoved(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.remove(s.aggregate(), 4)
	assert.Zero(t, s.pending("g", s.heads(3)))
	assert.Equal(t, uint64(2), s.pending("g", s.heads(5)))
	s.compareStored([]string{"g"}, s.heads(3), nil)
	assert.Empty(t, s.findings)
	s.compareStored([]string{"g"}, s.heads(4), nil)
	assert.Equal(t, []campaign.Kind{Lost}, s.kinds())
}

func TestTheOracleForgivesAnAckThatWasNotStoredBeforeARemoval(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.remove(s.aggregate(), 3)
	s.compareStored([]string{"g"}, s.heads(2), nil)
	assert.Empty(t, s.findings)
}

func TestTheOracleKnowsWhatAProjectionHasPassedOver(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.oracle.store(s.a, positionWrite{stream: s.s, to: 1, effects: 1}, false)
	s.remove(s.aggregate(), 4)
	s.deliver(t.Context(), s.a, s.s, 4)
	s.oracle.store(s.a, positionWrite{stream: s.s, to: 4, effects: 1}, false)
	assert.Empty(t, s.findings)
	n, sum := s.passedOf(s.s)
	assert.Equal(t, [2]uint64{2, 5}, [2]uint64{n, sum})
	s.sendBack(&member{name: "operator"}, positionWrite{stream: s.s, to: 2})
	n, sum = s.passedOf(s.s)
	assert.Equal(t, [2]uint64{2, 5}, [2]uint64{n, sum}, "the other one was removed, too")
	n, sum = s.againOf(s.s)
	assert.Equal(t, [2]uint64{1, 4}, [2]uint64{n, sum})
}

func TestAProjectionLacksWhatWasRemovedBehindItsPosition(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.remove(s.aggregate(), 4)
	n, sum := s.passedOf(s.s)
	assert.Equal(t, [2]uint64{3, 6}, [2]uint64{n, sum}, "which nothing has led it to")
	s.handle(s.a, 1)
	s.oracle.store(s.a, positionWrite{stream: s.s, to: 1, effects: 1}, false)
	n, sum = s.passedOf(s.s)
	assert.Equal(t, [2]uint64{2, 5}, [2]uint64{n, sum})
}

func TestASagaMayLackAStepOnWhatWasRemoved(t *testing.T) {
	t.Parallel()
	tale := newTale(t)
	s := stream{topic: "order", id: "a0"}
	tale.sources[s] = append(tale.sources[s], "e4")
	tale.oracle.remove(s, 5)
	tale.follow(tale.records)
	assert.Empty(t, tale.oracle.findings)
	tale = newTale(t)
	tale.oracle.remove(s, 3)
	tale.records = tale.records[1:]
	tale.follow(tale.records)
	require.Len(t, tale.oracle.findings, 1)
	assert.Contains(t, tale.oracle.findings[0].Text, "takes a step on order/a0 #2, not on #1")
}

func TestAHeadSaysThatMoreIsRemoved(t *testing.T) {
	t.Parallel()
	got, err := overrun([]byte(`{"Item":{"version":{"N":"9"},"truncated_before":{"N":"5"}}}`))
	require.NoError(t, err)
	assert.JSONEq(t, `{"Item":{"version":{"N":"9"},"truncated_before":{"N":"6"}}}`, string(got))
	got, err = overrun([]byte(`{"Item":{"version":{"N":"9"}}}`))
	require.NoError(t, err)
	assert.JSONEq(t, `{"Item":{"version":{"N":"9"}}}`, string(got))
}

func TestTheOracleFindsADeletionThatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.remove(s.aggregate(), 4)
	s.refused("w1", s.aggregate(), 3)
	assert.Empty(t, s.findings)
	assert.False(t, s.isDeleted(s.aggregate()))
	s.deleted(s.aggregate(), 3)
	assert.True(t, s.isDeleted(s.aggregate()))
	s.refused("w1", s.aggregate(), 4)
	assert.Equal(t, []campaign.Kind{Removed}, s.kinds())
}
