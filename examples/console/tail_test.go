package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/internal/browsertest"
)

func TestALiveTailFollowsATopic(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		write := func(id, item string) {
			require.NoError(t, w.order(t.Context(), id, LineAdded{Line{item, 1, 1}}))
		}
		ada := chromium.User(t, "Ada")
		ada.Open(w.page("tail"))
		ada.Type("Topic", "order")
		ada.Type("Id contains", "tail-")
		ada.Press("Follow")
		ada.Sees("Live tail of order", "Live", "read units in")
		write("tail-1", "the beginning")
		ada.Sees("order tail-1", `"item": "the beginning"`)
		write("other-1", "of another order")
		write("tail-1", "another one "+script)
		ada.Sees("another one")
		ada.SeesNo("of another order")
		shown := browsertest.Evaluate[[]string](ada, `[...document.querySelectorAll("#tail-events .of")].map((e) => e.innerText)`)
		assert.Len(t, shown, 2, "each event once, and none that was not asked for")
		assert.Equal(t, "2", browsertest.Evaluate[string](ada, `document.querySelector("#tail-events a.number").innerText`), "newest first")

		ada.Press("Pause")
		ada.Sees("Paused. Nothing is read.")
		write("tail-1", "while paused")
		received := len(ada.Received())
		ada.Press("Resume")
		ada.Sees("while paused")
		assert.Greater(t, len(ada.Received()), received)
		assert.Len(t, browsertest.Evaluate[[]string](ada, `[...document.querySelectorAll("#tail-events .of")].map((e) => e.innerText)`), 3)

		hide(ada, true)
		ada.Sees("Paused while hidden.")
		received = len(ada.Received())
		write("tail-1", "while hidden")
		hide(ada, false)
		ada.Sees("while hidden")
		assert.Greater(t, len(ada.Received()), received)

		ada.Press("Clear")
		ada.SeesNo("tail-1")
		write("tail-2", "after all")
		ada.Sees("after all")
		assert.Nil(t, browsertest.Evaluate[any](ada, `window.owned ?? null`))
	})
}

func TestALiveTailFiltersByTheTypeOfEvents(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		ada.Open(w.page("tail", "topic", "order", "event_type", "noted", "id", "typed-"))
		ada.Sees("Live", "read units in")
		require.NoError(t, w.order(t.Context(), "typed-1", LineAdded{Line{"unwanted", 1, 1}}, Noted{"this is asked for"}))
		ada.Sees("this is asked for")
		ada.SeesNo("unwanted")
	})
}
