package main

import (
	"fmt"
	"testing"

	"github.com/millrace-dev/millrace/examples/internal/browsertest"
	"github.com/millrace-dev/millrace/internal/testdb"
)

func TestManyWindowsOfOneBrowserStayUpToDate(t *testing.T) {
	t.Parallel()
	s := start(t, testdb.Client(t), false)
	s.order("first", "Ajanta", "Naan")
	const connections = 6 // the limit of a browser for one server
	windows := []*browsertest.User{chromium.User(t, "Ada")}
	for len(windows) <= connections {
		windows = append(windows, windows[0].Window())
	}
	for _, window := range windows {
		window.Open(s.url)
		window.Sees("2 × Naan")
	}
	s.order("second", "Noodle Bar", "Ramen")
	for _, window := range windows {
		window.Sees("2 × Ramen")
	}
	windows[0].Open("about:blank") // another window takes its place
	s.order("third", "Noodle Bar", "Gyoza")
	for _, window := range windows[1:] {
		window.Sees("2 × Gyoza")
	}
}

// hide makes the page believe that it is hidden, or visible again.
func hide(u *browsertest.User, hidden bool) {
	browsertest.Evaluate[any](u, fmt.Sprintf(`void (() => {
		Object.defineProperty(document, "hidden", { value: %t, configurable: true });
		document.dispatchEvent(new Event("visibilitychange"));
	})()`, hidden))
}

func TestAPageThatNobodySeesHasNoStream(t *testing.T) {
	t.Parallel()
	s := start(t, testdb.Client(t), false)
	ada := chromium.User(t, "Ada")
	ada.Open(s.url)
	ada.Sees("ada has no orders here yet")
	hide(ada, true)
	browsertest.Evaluate[any](ada, `void (() => {
		const Real = window.EventSource;
		window.EventSource = function (path) { return window.last = new Real(path); };
		window.EventSource.CLOSED = Real.CLOSED;
	})()`)
	hide(ada, false)
	ada.Waits("window.last?.readyState === 1")
	hide(ada, true)
	ada.Waits("window.last.readyState === 2")
	s.order("first", "Ajanta", "Naan")
	hide(ada, false)
	ada.Sees("2 × Naan")
}
