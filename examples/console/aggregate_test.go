package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/internal/browsertest"
	"github.com/millrace-dev/millrace/journal"
)

// event returns an event of an order.
func (w *world) event(t *testing.T, id string, number uint64) *journal.Record {
	t.Helper()
	for r, err := range w.Journal().Events(t.Context(), orderID(id), number, number) {
		require.NoError(t, err)
		return r
	}
	require.Fail(t, "there is no such event")
	return nil
}

// numbers returns the numbers of the events on a page.
func numbers(u *browsertest.User) []string {
	u.Waits(`document.readyState !== "loading"`)
	return browsertest.Evaluate[[]string](u, `[...document.querySelectorAll(".timeline a.number")].map((e) => e.innerText)`)
}

func TestATimelineGoesFromTheNewestEventToTheFirst(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		ada.Open(w.url)
		ada.Type("Type", "order")
		ada.Type("Id", large)
		ada.Press("Find")
		ada.Sees("order "+large, "Events 296 to 320 of 320", "order.noted.v1", "gzip", "after event 300")
		shown := numbers(ada)
		require.Len(t, shown, 25)
		assert.Equal(t, []string{"320", "296"}, []string{shown[0], shown[24]})

		older(ada)
		ada.Sees("Events 271 to 295 of 320")
		newer(ada)
		ada.Sees("Events 296 to 320 of 320")

		ada.Type("Up to event", "20")
		ada.Press("Go")
		ada.Sees("Events 1 to 20 of 320", "order.placed.v1")
		assert.Zero(t, browsertest.Evaluate[int](ada, `[...document.querySelectorAll(".pages a")].filter((a) => a.innerText === "Older").length`), "there is nothing older")
		ada.Press("7")
		ada.Sees("Events 7 to 7 of 320")
		assert.Equal(t, []string{"7"}, numbers(ada))
	})
}

func older(u *browsertest.User) { follow(u, "Older") }
func newer(u *browsertest.User) { follow(u, "Newer") }

// follow clicks a link that is above and below the events.
func follow(u *browsertest.User, name string) {
	browsertest.Evaluate[any](u, `{ [...document.querySelectorAll(".pages a")].find((a) => a.innerText === `+quote(name)+`).click(); null }`)
}

func TestAnEventShowsItsPayloadAndWhatItHasChanged(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		ada.Open(w.page("aggregate", "type", "order", "id", large, "from", "3", "to", "3"))
		e := w.event(t, large, 3)
		ada.Sees(`"item": "item 1"`, "lines[1]", `"quantity":1`, "total", "10", "21")
		ada.Press("State after event 3")
		ada.Sees(`"customer": "cleo"`, `"total": 21`)
		ada.Press("Metadata and ids")
		ada.Sees(e.EventID, e.CommitID)
	})
}

func TestAnAggregateIsShownAsOfATimeInTheVisitorsZone(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada", browsertest.TimeZone("Asia/Tokyo"))
		at := w.event(t, large, 100).OccurredAt.Add(time.Millisecond)
		require.True(t, at.Before(w.event(t, large, 101).OccurredAt))
		local := at.UTC().Add(9 * time.Hour).Format("2006-01-02T15:04:05.000")
		ada.Open(w.page("aggregate", "type", "order", "id", large))
		browsertest.Evaluate[any](ada, `{ document.querySelector("input[name=at]").value = `+quote(local)+`; null }`)
		ada.Press("Show")
		ada.Sees("after event 100.", "Events 76 to 100 of 320")
		// Compare times, since the browser omits zeros at the end of the value.
		ada.Waits(`new Date(document.querySelector("input[name=at]").value + "Z").getTime() === Date.parse(` + quote(local+"Z") + `)`)
		ada.Press("Now")
		ada.Sees("Events 296 to 320 of 320")

		ada.Open(w.page("aggregate", "type", "order", "id", large, "at", "2001-02-03T04:05"))
		ada.Sees("it had no events yet")
	})
}

func TestCausesAndTheirEventsAreLinked(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		ada.Open(w.page("aggregate", "type", "order", "id", web+"-1"))
		ada.Sees("order.confirmed.v1", "caused by event 1", "caused event 3")
		ada.Press("caused by event 1")
		ada.Waits(`location.hash === "#event-1" && document.querySelector("#event-1:target") !== null`)
		ada.PressIn("order.confirmed.v1", "Metadata and ids")
		ada.Sees("visit-0")
		ada.PressIn("order.confirmed.v1", "Mark events of the same correlation")
		assert.Equal(t, []string{"3", "2", "1"}, browsertest.Evaluate[[]string](ada, `[...document.querySelectorAll(".event.marked .number")].map((e) => e.innerText)`))
	})
}

func TestEncryptedPayloadsAreShownAsSuch(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		ada.Open(w.page("aggregate", "type", "customer", "id", "1"))
		ada.Sees("aes-gcm", `"name": "Ada Lovelace"`)
		ada.Open(w.page("aggregate", "type", "customer", "id", destroyed))
		ada.Sees("aes-gcm", "encrypted, and its key was destroyed", "No states on this page.")
		ada.SeesNo("Babbage")
		ada.Open(w.page("aggregate", "type", "card", "id", billed))
		ada.Sees("encoded as vault, which this console cannot decode", "The console has no repository for this type.")
	})
}

func TestRemovedEventsAreShownAsSuch(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		ada.Open(w.page("aggregate", "type", "order", "id", truncated, "to", "45"))
		ada.Sees("events before 41", "Events 41 to 45 of 62")
		assert.Equal(t, []string{"45", "44", "43", "42", "41"}, numbers(ada))
		ada.Open(w.page("aggregate", "type", "order", "id", deleted))
		ada.Sees("The aggregate was deleted.", "Deleted")
		assert.Empty(t, numbers(ada))
	})
}

func TestAggregatesAreListedInPages(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		ada.Open(w.page("aggregates"))
		ada.Press("order")
		listed := map[string]bool{}
		for page := 1; ; page++ {
			ada.Sees("Aggregates of type order")
			ada.Waits(`document.readyState !== "loading"`)
			for _, id := range browsertest.Evaluate[[]string](ada, `[...document.querySelectorAll("main tbody th")].map((e) => e.innerText)`) {
				assert.False(t, listed[id], id)
				listed[id] = true
			}
			if !browsertest.Evaluate[bool](ada, `document.querySelector("a[rel=next]") !== null`) {
				assert.Equal(t, 2, page)
				break
			}
			url := ada.URL()
			ada.Press("Next page")
			ada.Waits(`location.href !== ` + quote(url))
		}
		for _, id := range []string{large, truncated, deleted, odd(), "order-60", "parked-1", web + "-1"} {
			assert.True(t, listed[id], id)
		}
	})
}
