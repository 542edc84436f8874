package web_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/internal/browsertest"
	"github.com/millrace-dev/millrace/examples/planningpoker/service"
)

func TestAPageThatIsNotSeenKeepsNoStream(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada, ben := chromium.User(t, "Ada"), chromium.User(t, "Ben")
	path := open(ada, s.URL(), "Sprint 12")
	enter(ada, s.URL()+path, "Ada")
	enter(ben, s.URL()+path, "Ben")
	ada.Sees("0 of 2 have picked")
	turn := func(visibility string) {
		browsertest.Evaluate[any](ada, fmt.Sprintf(`{
			Object.defineProperty(document, "visibilityState", {value: %q, configurable: true});
			Object.defineProperty(document, "hidden", {value: %[1]q === "hidden", configurable: true});
			document.dispatchEvent(new Event("visibilitychange"));
			null;
		}`, visibility))
	}
	browsertest.Evaluate[any](ada, `{
		const close = EventSource.prototype.close;
		window.streamsClosed = 0;
		EventSource.prototype.close = function () { window.streamsClosed++; close.call(this); };
		null;
	}`)

	turn("hidden")

	ada.Waits(`window.streamsClosed === 1`)
	ben.Press("8")
	ben.Sees("1 of 2 have picked")
	assert.Contains(t, ada.Text(), "0 of 2 have picked")
	turn("visible")
	ada.Sees("1 of 2 have picked")
	ada.Press("5")
	ada.Sees("Average 6.5")
}

// many windows, together with the first one, are more than a browser's connections to a server.
const many = 7

func TestManyWindowsOfOneBrowserLeaveConnectionsForRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada := chromium.User(t, "Ada")
	path := open(ada, s.URL(), "Sprint 12")
	enter(ada, s.URL()+path, "Ada")
	browsertest.Evaluate[any](ada, fmt.Sprintf(
		`{ window.others = Array.from({length: %d}, () => open(location.href, "", "popup,width=500,height=400")); null; }`, many))

	ada.Waits(`window.others.every((other) => ["name", "connection"].some((id) => other.document.getElementById(id)?.textContent))`)
	assert.True(t, browsertest.Evaluate[bool](ada, `window.others.every((other) => !other.document.hidden)`), "all windows can be seen")
	ada.Sees("Paused, as other windows show rooms.")
	ada.Press("5")
	ada.Waits(`window.others.at(-1).document.getElementById("progress").textContent.startsWith("Average 5")`)
	browsertest.Evaluate[any](ada, `{ window.dispatchEvent(new Event("focus")); null; }`)
	ada.Sees("Average 5")
	ada.SeesNo("Paused")
}

func TestWindowsThatAreClosedDoNotPauseOthers(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada := chromium.User(t, "Ada")
	path := open(ada, s.URL(), "Sprint 12")
	enter(ada, s.URL()+path, "Ada")
	// A window that is closed says a moment later that its stream has ended.
	browsertest.Evaluate[any](ada, `{
		window.streamsEnded = 0;
		window.streams = new BroadcastChannel("streams");
		window.streams.onmessage = ({ data }) => { if (!data.open) window.streamsEnded++; };
		null;
	}`)
	for n := range 2 {
		browsertest.Evaluate[any](ada, `{ window.others = Array.from({length: 3}, () => open(location.href, "", "popup,width=500,height=400")); null; }`)
		ada.Waits(`window.others.every((other) => other.document.getElementById("name")?.textContent)`)
		browsertest.Evaluate[any](ada, `{ window.others.forEach((other) => other.close()); null; }`)
		ada.Waits(fmt.Sprintf(`window.others.every((other) => other.closed) && window.streamsEnded >= %d`, 3*(n+1)))
	}
	assert.NotContains(t, ada.Text(), "Paused")
	ada.Press("5")
	ada.Sees("Average 5")
}

func TestManyTabsOfOneBrowserLeaveConnectionsForRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada := tabbed.User(t, "Ada")
	path := open(ada, s.URL(), "Sprint 12")
	enter(ada, s.URL()+path, "Ada")
	browsertest.Evaluate[any](ada, fmt.Sprintf(`{ window.others = Array.from({length: %d}, () => open(location.href)); null; }`, many))

	ada.Waits(`window.others.every((other) => other.document.readyState === "complete")`)
	// Tabs behind others cannot be seen.
	ada.Waits(`window.others.slice(0, -1).every((other) => other.document.hidden)`)
	ada.Press("5")
	ada.Sees("Average 5")
}
