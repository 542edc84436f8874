package chaos

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnEventIsLostIfNobodyAckedItAsItWasWritten(t *testing.T) {
	t.Parallel()
	want := history{"x": {{Token: 1}, {Token: 2}}}
	for name, test := range map[string]struct {
		lines []entry
		lost  int
	}{
		"both acked":        {[]entry{at(0, ack, "a", 1), at(1, ack, "a", 2)}, 0},
		"acked twice":       {[]entry{at(0, ack, "a", 1), at(1, ack, "b", 1), at(2, ack, "a", 2)}, 0},
		"one only came":     {[]entry{at(0, ack, "a", 1), at(1, deliver, "a", 2), at(2, kill, "a")}, 1},
		"one was nacked":    {[]entry{at(0, ack, "a", 1), at(1, nack, "a", 2)}, 1},
		"nothing came":      {nil, 2},
		"one is another":    {[]entry{at(0, ack, "a", 1), {Kind: ack, Thing: "x", Number: 2, Token: 7}}, 1},
		"one is made up":    {[]entry{at(0, ack, "a", 1), at(1, ack, "a", 2), at(2, ack, "a", 3)}, 1},
		"of a made-up name": {[]entry{at(0, ack, "a", 1), at(1, ack, "a", 2), {Kind: ack, Thing: "y", Number: 1, Token: 1}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			findings := checkAcked("f", test.lines, want)
			assert.Len(t, findings, test.lost)
			for _, f := range findings {
				assert.Equal(t, Lost, f.Kind)
			}
		})
	}
}

func TestMembersAreWaitedForUntilEachEventIsAcked(t *testing.T) {
	t.Parallel()
	want := history{"x": {{Token: 1}, {Token: 2}}}
	lines := []entry{at(0, deliver, "a", 1), at(1, ack, "a", 1), at(2, deliver, "a", 2), at(3, nack, "a", 2)}
	assert.False(t, hasAll(placesOf(lines, ack), want))
	lines = append(lines, at(4, deliver, "a", 2), at(5, ack, "a", 2))
	assert.True(t, hasAll(placesOf(lines, ack), want))
}

func TestAnAcknowledgedCommitThatTheJournalLacksIsLost(t *testing.T) {
	t.Parallel()
	acknowledged := map[place]uint64{{"x", 1}: 1, {"x", 2}: 2}
	assert.Empty(t, checkAcknowledged(history{"x": {{Token: 1}, {Token: 2}, {Token: 3}}}, acknowledged), "more than was acknowledged is no fault")
	assert.Len(t, checkAcknowledged(history{"x": {{Token: 1}}}, acknowledged), 1)
	assert.Len(t, checkAcknowledged(history{"x": {{Token: 1}, {Token: 3}}}, acknowledged), 1)
	assert.Len(t, checkAcknowledged(history{}, acknowledged), 2)
}

func TestEffectsMustBeThoseOfTheEvents(t *testing.T) {
	t.Parallel()
	want := history{"x": {{Token: 1, Amount: 10}, {Token: 2, Amount: 20}}}
	right := sums{Events: 2, Amount: 30}
	for name, test := range map[string]struct {
		list  []string
		sums  sums
		wrong int
	}{
		"once and in order": {[]string{"1:1", "2:2"}, right, 0},
		"twice":             {[]string{"1:1", "2:2", "2:2"}, sums{3, 50}, 2},
		"out of order":      {[]string{"2:2", "1:1"}, right, 1},
		"left out":          {[]string{"1:1"}, sums{1, 10}, 2},
		"of another event":  {[]string{"1:1", "2:7"}, right, 1},
		"in part":           {[]string{"1:1", "2:2"}, sums{1, 10}, 1},
		"never":             {nil, sums{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			have := readModel{
				applied: map[string][]string{thingRow("x"): test.list},
				sums:    map[string]sums{counterRow("x"): test.sums},
			}
			findings := checkEffects(have, want)
			assert.Len(t, findings, test.wrong)
			for _, f := range findings {
				assert.Equal(t, Effects, f.Kind)
			}
		})
	}
	t.Run("of an aggregate that is not", func(t *testing.T) {
		t.Parallel()
		assert.Len(t, checkEffects(readModel{applied: map[string][]string{thingRow("y"): {"1:1"}}}, history{}), 1)
	})
}

func TestRowsOfTheReadModelAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	m := readModel{applied: map[string][]string{}, sums: map[string]sums{}}
	list := &types.AttributeValueMemberL{Value: []types.AttributeValue{text("1:1"), text("1:1")}}
	require.NoError(t, m.add(item{"id": text(thingRow("x")), "applied": list}))
	require.NoError(t, m.add(item{"id": text("counter 1"), "events": number(2), "amount": number(30)}))
	assert.Equal(t, readModel{
		applied: map[string][]string{thingRow("x"): {"1:1", "1:1"}},
		sums:    map[string]sums{"counter 1": {2, 30}},
	}, m)
	assert.Error(t, m.add(item{"id": text("counter 2"), "events": number(2)}), "a counter without an amount")
}
