package sim

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/test/campaign"
)

// scene is an oracle that watches two members of one group and one aggregate.
type scene struct {
	*oracle
	s    stream
	a, b *member
}

func newScene() scene {
	o := newOracle(newTrace(io.Discard))
	return scene{oracle: o, s: stream{"g", "order", "1"}, a: &member{name: "a", group: "g", notices: time.Hour}, b: &member{name: "b", group: "g", notices: time.Hour}}
}

// handle records a message from its delivery to its ack.
func (s scene) handle(m *member, number uint64) {
	s.deliver(context.Background(), m, s.s, number)
	s.ack(context.Background(), m, s.s, number)
}

// store records a position that is stored under the epoch 0, which is current while no membership
// is known.
func (s scene) store(m *member, id stream, to uint64, flush bool) {
	s.oracle.store(m, positionWrite{stream: id, to: to}, flush)
}

func (s scene) claim(m *member, id stream) uint64 {
	return s.oracle.claim(m, positionWrite{stream: id})
}

// under returns a position of the scene in shard 0, under an epoch.
func (s scene) under(epoch, to uint64) positionWrite {
	return positionWrite{stream: s.s, epoch: epoch, to: to}
}

// change makes a member own shard 0 under an epoch.
func (s scene) change(m *member, number, epoch uint64) {
	s.enrol(m, membershipChange{membership: "g/order", owners: []uint64{number}, epochs: []uint64{epoch}, joins: []uint64{number}})
}

func (s scene) kinds() (kinds []campaign.Kind) {
	for _, f := range s.findings {
		kinds = append(kinds, f.Kind)
	}
	return kinds
}

func TestTheOracleFindsNothingWhereAllIsWell(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.deliver(t.Context(), s.a, s.s, 2)
	s.nack(t.Context(), s.a, s.s, 2)
	s.handle(s.a, 2)
	s.store(s.a, s.s, 2, true)
	s.handle(s.a, 3) // acked, but never stored
	s.learn(s.b, s.s, s.claim(s.b, s.s), 0)
	s.handle(s.b, 3)
	s.store(s.b, s.s, 3, true)
	heads, positions := map[stream]uint64{{topic: "order", id: "1"}: 3}, map[stream]uint64{s.s: 3}
	s.compareStored([]string{"g"}, heads, positions)
	assert.Empty(t, s.findings)
	assert.Zero(t, s.pending("g", heads))
	assert.Equal(t, 5, s.deliveries())
}

func TestTheOracleFindsAnEventThatIsSkipped(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.handle(s.a, 3)
	assert.Equal(t, []campaign.Kind{Reordered}, s.kinds())
}

func TestTheOracleFindsAnEventBeforeTheOneBeforeItIsAcked(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.deliver(t.Context(), s.a, s.s, 1)
	s.deliver(t.Context(), s.a, s.s, 1)
	assert.Equal(t, []campaign.Kind{Reordered}, s.kinds())
}

func TestTheOracleFindsAMemberThatCannotKnowWhatAnotherAcked(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1) // and it does not store it
	s.handle(s.b, 2)
	assert.Equal(t, []campaign.Kind{Reordered}, s.kinds())
}

func TestTheOracleFindsWhatComesAgainThoughTheMemberStoredIt(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.store(s.a, s.s, 1, true)
	s.handle(s.a, 1)
	assert.Equal(t, []campaign.Kind{Repeated}, s.kinds())
}

func TestTheOracleFindsWhatComesAgainThoughTheMemberWasTold(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.store(s.a, s.s, 1, true)
	s.learn(s.b, s.s, s.claim(s.b, s.s), 0)
	s.handle(s.b, 1)
	assert.Equal(t, []campaign.Kind{Repeated}, s.kinds())
}

func TestTheOracleFindsWhatComesAgainFromAMemberThatCameLater(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.store(s.a, s.s, 1, true)
	s.b.born = s.trace.now() + time.Nanosecond
	s.handle(s.b, 1)
	assert.Equal(t, []campaign.Kind{Repeated}, s.kinds())
}

func TestTheOracleForgivesAMemberThatHasNotNoticedYet(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.store(s.a, s.s, 1, true)
	s.handle(s.b, 1)
	assert.Empty(t, s.findings)
}

func TestTheOracleFindsAMemberThatShouldHaveNoticed(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.store(s.a, s.s, 1, true)
	s.b.notices = -time.Nanosecond
	s.handle(s.b, 1)
	assert.Equal(t, []campaign.Kind{Repeated}, s.kinds())
}

func TestTheOracleForgivesATransactionWhoseReplyWasLost(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.deliver(t.Context(), s.a, s.s, 1)
	s.store(s.a, s.s, 1, false)
	s.nack(t.Context(), s.a, s.s, 1)
	s.handle(s.a, 1)
	assert.Empty(t, s.findings)
}

func TestTheOracleTakesATransactionForAnAck(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.deliver(t.Context(), s.a, s.s, 1)
	s.store(s.a, s.s, 1, false) // and it crashes
	s.learn(s.b, s.s, s.claim(s.b, s.s), 0)
	s.handle(s.b, 2)
	assert.Empty(t, s.findings)
}

func TestTheOracleFindsAPositionThatMovesBackOrTooFar(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.handle(s.a, 2)
	s.store(s.a, s.s, 2, true)
	s.store(s.b, s.s, 1, true)
	s.store(s.b, s.s, 3, true)
	assert.Equal(t, []campaign.Kind{Moved, Moved}, s.kinds())
}

func TestTheOracleFindsWhatNeverCame(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.store(s.a, s.s, 1, true)
	s.compareStored([]string{"g", "h"}, map[stream]uint64{{topic: "order", id: "1"}: 2}, map[stream]uint64{s.s: 1})
	assert.Equal(t, []campaign.Kind{Lost, Lost}, s.kinds())
}

func TestTheOracleFindsAPositionThatIsNotInTheTable(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.store(s.a, s.s, 1, true)
	s.compareStored([]string{"g"}, map[stream]uint64{{topic: "order", id: "1"}: 1}, nil)
	assert.Equal(t, []campaign.Kind{Moved}, s.kinds())
}

func TestTheOracleDoesNotCountAnAckThatComesTooLate(t *testing.T) {
	t.Parallel()
	s := newScene()
	late, expire := context.WithCancel(t.Context())
	s.deliver(late, s.a, s.s, 1)
	expire()
	s.deliver(t.Context(), s.a, s.s, 1)
	s.ack(late, s.a, s.s, 1)
	s.deliver(t.Context(), s.a, s.s, 1)
	s.store(s.a, s.s, 1, true)
	assert.Equal(t, []campaign.Kind{Reordered, Moved}, s.kinds(), "the second message is still out, and nothing was acked")
}

func TestTheOraclePassesOverWhatAGroupDidNotAskFor(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.filters["g"] = true
	for number := uint64(1); number <= 4; number++ {
		s.handle(s.a, number)
	}
	s.store(s.a, s.s, 5, true)
	s.handle(s.a, 6)
	assert.Empty(t, s.findings)
	s.handle(s.a, 10)
	assert.Equal(t, []campaign.Kind{Unwanted}, s.kinds())
}

func TestTheOracleFindsAPositionBeyondWhatAGroupDidNotAskFor(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.filters["g"] = true
	s.store(s.a, s.s, 1, true)
	assert.Equal(t, []campaign.Kind{Moved}, s.kinds())
}

func TestTheOracleFindsWhatGoesOutWhileAGroupIsIdle(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.rest("g", "order", true)
	s.handle(s.a, 1)
	s.rest("g", "order", false)
	s.handle(s.a, 2)
	assert.Equal(t, []campaign.Kind{Restless}, s.kinds())
}

func TestTheOracleKnowsWhoseShardsAreLeft(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.enrol(s.a, membershipChange{membership: "g/order", owners: []uint64{1, 1, 0}, joins: []uint64{1}})
	s.enrol(s.b, membershipChange{membership: "g/order", owners: []uint64{1, 2, 2}, joins: []uint64{2}})
	assert.Equal(t, 1, s.left(s.a))
	s.enrol(s.b, membershipChange{membership: "g/order", owners: []uint64{0, 2, 2}, gone: []uint64{1}})
	assert.Equal(t, 1, s.left(s.a), "nobody has it yet")
	s.enrol(s.b, membershipChange{membership: "g/order", owners: []uint64{2, 2, 2}})
	assert.Zero(t, s.left(s.a))
}

func TestTheOracleForgivesWhatAFormerOwnerStoresAfterTheClaim(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.change(s.a, 1, 1)
	s.handle(s.a, 1)
	s.handle(s.a, 2)
	s.change(s.b, 2, 2)
	s.learn(s.b, s.s, s.oracle.claim(s.b, s.under(2, 0)), 0)
	s.oracle.store(s.a, s.under(1, 2), true)
	s.b.notices = -time.Nanosecond
	s.handle(s.b, 1)
	assert.Empty(t, s.findings, "b has read its claim before a stored")
	s.learn(s.b, s.s, s.oracle.read(s.b, s.under(0, 0)), 0)
	s.handle(s.b, 2)
	assert.Equal(t, []campaign.Kind{Repeated}, s.kinds(), "b has read it meanwhile")
}

func TestTheOracleHoldsALaterOwnerToWhatOneHasRead(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.change(s.a, 1, 1)
	s.handle(s.a, 1)
	s.change(s.b, 2, 2)
	s.oracle.store(s.a, s.under(1, 1), true)
	c := &member{name: "c", group: "g", born: s.trace.now()}
	s.handle(c, 1)
	assert.Empty(t, s.findings, "nobody has read it")
	s.oracle.read(s.b, s.under(0, 0))
	c.notices = -time.Nanosecond
	s.handle(c, 1)
	assert.Equal(t, []campaign.Kind{Repeated}, s.kinds())
}

func TestTheOracleHoldsAnybodyToAnEffect(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.change(s.a, 1, 1)
	s.deliver(t.Context(), s.a, s.s, 1)
	s.change(s.b, 2, 2)
	s.effect(s.a, s.s, 1)
	s.oracle.store(s.a, s.under(1, 1), false)
	assert.Empty(t, s.findings)
	s.b.notices = -time.Nanosecond
	s.handle(s.b, 1)
	s.effect(s.b, s.s, 1)
	assert.Equal(t, []campaign.Kind{Repeated, Effect}, s.kinds())
}

func TestTheOracleSeesAThiefRaiseTheEpoch(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.change(s.a, 1, 1)
	s.robbed("g/order")
	assert.False(t, s.isCurrent(s.under(1, 1)))
	assert.True(t, s.isCurrent(s.under(2, 1)))
	assert.NoError(t, s.compareEpochs(map[string][]uint64{"g/order": {2}}))
	assert.Error(t, s.compareEpochs(map[string][]uint64{"g/order": {3}}))
}

func TestPositionsAreReadFromAReply(t *testing.T) {
	t.Parallel()
	reply := `{"Responses":{"checkpoint":[
		{"pkey":{"S":"g/order-3/2"},"skey":{"S":"position/a1-0"},"position":{"N":"5"}},
		{"pkey":{"S":"g/order-3/2"},"skey":{"S":"position/a2-0"},"epoch":{"N":"5"}}]}}`
	want := []positionWrite{{stream: stream{"g", "order", "a1"}, shard: 3}}
	assert.Equal(t, want, positionReads([]byte(reply)))
	reply = `{"Item":{"pkey":{"S":"g/order-3"},"skey":{"S":"position/a1-0"},"position":{"N":"5"}}}`
	assert.Equal(t, want, positionReads([]byte(reply)))
}

func TestTheOracleExpectsAgainWhatAnOperatorSendsBack(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.handle(s.a, 2)
	s.store(s.a, s.s, 2, true)
	s.sendBack(&member{name: "operator"}, positionWrite{stream: s.s, to: 1})
	s.handle(s.a, 3)
	assert.Empty(t, s.findings, "it has not noticed yet, and its ack does not count")
	assert.Equal(t, uint64(2), s.pending("g", map[stream]uint64{{topic: "order", id: "1"}: 3}))
	s.learn(s.b, s.s, s.claim(s.b, s.s), 1)
	s.handle(s.b, 2)
	s.handle(s.b, 3)
	s.store(s.b, s.s, 3, true)
	assert.Empty(t, s.findings)
	n, sum := s.againOf(s.s)
	assert.Equal(t, [2]uint64{1, 2}, [2]uint64{n, sum})
}

func TestTheOracleFindsAMemberThatDoesNotNoticeAReset(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.handle(s.a, 1)
	s.store(s.a, s.s, 1, true)
	s.sendBack(&member{name: "operator"}, positionWrite{stream: s.s})
	s.handle(s.a, 2)
	s.store(s.a, s.s, 2, true)
	s.a.notices = -time.Nanosecond
	s.handle(s.a, 3)
	assert.Equal(t, []campaign.Kind{Moved, Moved, Repeated}, s.kinds())
}
