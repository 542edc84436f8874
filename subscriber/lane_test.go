package subscriber

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestNoLaneBeginsOnAShardThatHasEnded(t *testing.T) {
	t.Parallel()
	d := &deliverer{}
	assert.True(t, d.enter())
	d.serving.Done()
	d.end()
	assert.False(t, d.enter(), "nobody would wait for it")
}

func TestThePauseAfterANackDoublesUpToTheMost(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		config Config
		want   []time.Duration
	}{
		"growing":    {Config{NackResendSleep: 10 * ms, MaxNackResendSleep: 50 * ms}, []time.Duration{10 * ms, 20 * ms, 40 * ms, 50 * ms, 50 * ms}},
		"by default": {Config{}, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 25600 * ms, 30000 * ms}},
		"constant":   {Config{NackResendSleep: 7 * ms, MaxNackResendSleep: 7 * ms}, []time.Duration{7 * ms, 7 * ms}},
		"long":       {Config{NackResendSleep: time.Hour}, []time.Duration{time.Hour, time.Hour}},
		"none":       {Config{NackResendSleep: -1}, []time.Duration{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.config.setDefaults()
			for i, want := range c.want {
				assert.Equal(t, want, c.config.nackPause(i+1), "attempt %d", i+1)
			}
			assert.Equal(t, c.want[len(c.want)-1], c.config.nackPause(1000), "without overflow")
		})
	}
}

func TestAggregatesWithFewFailuresGoFirstAndOthersTakeTurns(t *testing.T) {
	t.Parallel()
	d := &deliverer{term: &term{stopping: make(chan struct{})}}
	p := &pace{refilled: time.Now()}
	streams := map[string]*stream{}
	wait := func(name string, failures int) {
		streams[name] = &stream{}
		p.add(turn{deliverer: d, stream: streams[name]}, failures)
	}
	wait("blocked for long", 5_000)
	wait("blocked", 10)
	wait("new", 4)
	wait("newer", 5)
	wait("new too", 4)
	due := p.take(func() { p.credit = 10 })
	for i, name := range []string{"new", "new too", "newer", "blocked for long", "blocked"} {
		assert.Same(t, streams[name], due[i].stream, name)
	}
}
