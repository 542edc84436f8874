package process_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
)

func TestAStepHasAllThatItIsMadeOf(t *testing.T) {
	t.Parallel()
	at := time.Unix(1, 0)
	step := process.Record(Begun{1}, Reserved{}).
		Send(1, 2).Send(3).
		SetTimeout("a", time.Second).SetTimeoutAt("b", at).
		CancelTimeout("c").CancelTimeout("d", "e")
	assert.Equal(t, aggregate.Events[Saga]{Begun{1}, Reserved{}}, step.Events())
	assert.Equal(t, []any{1, 2, 3}, step.Commands())
	assert.Equal(t, []process.Timeout{{Name: "a", After: time.Second}, {Name: "b", At: at}}, step.Timeouts())
	assert.Equal(t, []string{"c", "d", "e"}, step.Cancelled())
}

func TestStepsThatBeginAlikeDoNotShareWhatIsAdded(t *testing.T) {
	t.Parallel()
	base := process.Record(Begun{1})
	for range 3 { // so that its slices have spare capacity
		base = base.Send("c").SetTimeout("t", 1).CancelTimeout("n")
	}
	one := base.Send("one").SetTimeout("one", 1).CancelTimeout("one")
	two := base.Send("two").SetTimeout("two", 1).CancelTimeout("two")
	assert.Equal(t, []any{"c", "c", "c", "one"}, one.Commands())
	assert.Equal(t, "one", one.Timeouts()[3].Name)
	assert.Equal(t, "one", one.Cancelled()[3])
	assert.Equal(t, "two", two.Commands()[3])
	assert.Equal(t, "two", two.Timeouts()[3].Name)
	assert.Equal(t, "two", two.Cancelled()[3])
	assert.Len(t, base.Commands(), 3)
}
