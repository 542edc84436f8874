package main

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/internal/browsertest"
	"github.com/millrace-dev/millrace/journal"
)

// page returns the link of a page with parameters.
func (w *world) page(name string, pairs ...string) string {
	query := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return w.url + name + "?" + query.Encode()
}

// pages returns links to all kinds of pages.
func (w *world) pages() []string {
	order := func(id string, more ...string) string {
		return w.page("aggregate", append([]string{"type", "order", "id", id}, more...)...)
	}
	return []string{
		w.url, w.page("", "find", "1"), w.page("topic", "name", "order"), w.page("topic", "name", oddTopic), w.page("topic", "name", "card"),
		w.page("aggregates"), w.page("aggregates", "type", "order"), w.page("aggregates", "type", oddTopic), w.page("aggregates", "type", "nothing"),
		order(large), order(large, "from", "100", "to", "100"), order(large, "at", "2001-02-03T04:05"), order(truncated, "to", "45"), order(deleted), order(odd()),
		w.page("aggregate", "type", oddTopic, "id", link), w.page("aggregate", "type", "customer", "id", destroyed), w.page("aggregate", "type", "card", "id", billed),
		w.page("tail"), w.page("tail", "topic", "order"), w.page("tail", "topic", oddTopic, "id", script),
		w.page("groups"), w.page("group", "name", "ledger", "topic", "order"), w.page("group", "name", "exports", "topic", "order"),
		w.page("group", "name", "reports", "topic", "order"), w.page("group", "name", image, "topic", oddTopic),
		w.page("behind", "name", "shipping", "topic", "order"), w.page("behind", "name", image, "topic", oddTopic), w.page("skipped", "name", "mails", "topic", "order"),
		w.page("skipped", "name", "labels", "topic", "order"), w.page("models"), w.page("model", "name", "totals"), w.page("processes"),
		w.page("processes", "show", "pending"), w.page("processes", "show", "open", "type", "checkout"), w.page("process", "type", "checkout", "id", overdue+" "+odd()),
		w.page("process", "type", "checkout", "id", unsent+"-1"),
	}
}

// errorPages returns links to pages with an error.
func (w *world) errorPages() []string {
	return []string{
		w.page("nothing"), w.page("aggregate", "type", odd(), "id", odd()), w.page("aggregate", "type", "order"), w.page("group", "name", odd(), "topic", odd()),
		w.page("model", "name", odd()), w.page("processes", "show", script), w.page("aggregates", "type", "order", "after", script),
		w.page("aggregate", "type", "order", "id", large, "at", script), w.page("aggregate", "type", "order", "id", large, "to", script),
	}
}

func TestEachPageCanBeReadAndRunsNoneOfItsTexts(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		u := chromium.User(t, "Ada", browsertest.Still)
		// To save time, each layout is tested in one window only: classic on a desktop, packed on a
		// phone.
		if w.Journal().Config().Layout == journal.Packed {
			u = chromium.User(t, "Ben", browsertest.Phone, browsertest.Dark, browsertest.Still)
		}
		u.Expects("status 400", "status 404")
		for _, page := range append(w.pages(), w.errorPages()...) {
			u.Open(page)
			u.Readable()
			browsertest.Evaluate[any](u, `document.querySelectorAll("details").forEach((d) => { d.open = true })`)
			u.Readable()
			assert.Empty(t, browsertest.Evaluate[string](u, breaches), page)
			if t.Failed() {
				t.Fatal(page)
			}
		}
	})
}

// breaches returns the effects of hostile texts on a page.
const breaches = `(() => {
	const links = [...document.querySelectorAll("a, form")].map((e) => new URL(e.getAttribute("href") ?? e.getAttribute("action"), location.href).href).filter((link) => !link.startsWith(location.origin + "/"));
	const loaded = performance.getEntriesByType("resource").map((e) => e.name).filter((name) => !name.startsWith(location.origin + "/"));
	const injected = [...document.querySelectorAll("main script, img, iframe, main style")].map((e) => e.outerHTML);
	return [window.owned, ...links, ...loaded, ...injected].filter(Boolean).join("\n");
})()`

func TestTheOverviewListsEachTroubleAndLeadsToIt(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		for concern, leads := range map[string]struct{ path, sees string }{
			"stopped ledger on order: event 3 of order stopping-1 has stopped the group: the books do not balance": {"group?name=ledger&topic=order", "Stopped by an event"},
			"blocked billing on order: ":                         {"behind?name=billing&topic=order", "blocked-1 blocked"},
			"parked shipping on order: ":                         {"behind?name=shipping&topic=order", "parked-6 parked"},
			"member lost exports on order: 1 member has sent no": {"group?name=exports&topic=order", "lost"},
			"no members reports on order: no member handles its": {"group?name=reports&topic=order", "No member handles this group's events"},
			"overdue checkout: ":                                 {"processes?type=checkout", "Timeout payment overdue"},
			"skipped mails on order: ":                           {"skipped?name=mails&topic=order", "event 3 of order skipped-4"},
			"paused search on order: paused by an operator":      {"group?name=search&topic=order", "Resume…"},
		} {
			ada.Open(w.url)
			ada.Waits(`(() => {
				const found = [...document.querySelectorAll(".concerns li")].filter((li) => li.textContent.startsWith(` + quote(concern) + `));
				if (found.length !== 1) return false;
				found[0].querySelector("a").click();
				return true;
			})()`)
			ada.Waits(`location.href.startsWith(` + quote(w.url+leads.path) + `)`)
			ada.Sees(leads.sees)
		}
	})
}

func TestTheOverviewListsTopicsAndGroups(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		ada.Open(w.url)
		ada.Sees("Topics", "checkout", "payment", oddTopic, "Consumer groups", "history", "confirmations", string(w.Journal().Config().Layout))
		assert.NotContains(t, browsertest.Evaluate[string](ada, `document.querySelector("[aria-labelledby=topics]").innerText`), "\ncard\t", "nobody has said so")
		ada.Press("Find all topics")
		ada.Sees("card")
		ada.Press("card")
		ada.Sees("Topic card", "no repository", "No consumer group handles this topic.", "encoded as vault, which this console cannot decode")
		ada.Press("JSON")
		ada.Sees(`"topic": "card"`)
	})
}

func TestAGroupShowsItsMembersAndShards(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		ada.Open(w.page("groups"))
		ada.Press("history")
		ada.Sees("Group history on order", "active", "alive", "0 events", "the first event")
		// It owns both shards.
		ada.Waits(`document.querySelector("[aria-labelledby=members] tbody td:last-child")?.innerText === "0, 1"`)
		ada.Waits(`document.querySelectorAll("[aria-labelledby=shards] tbody tr").length === 2`)
		ada.Open(w.page("group", "name", "exports", "topic", "order"))
		ada.Sees("members lost", "<img src=x onerror=owned=1>", "lost")
		ada.Open(w.page("model", "name", "totals"))
		ada.Sees("serving", "building", rebuilt.Group())
	})
}

func TestARefreshShowsWhatIsNewAndKeepsOpenForms(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		other := ada.Window() // it shows that time has passed
		for _, u := range []*browsertest.User{ada, other} {
			u.Open(w.page("group", "name", image, "topic", oddTopic))
		}
		ada.Press("Reset…")
		ada.Type("Type "+image+" to confirm", "half of the na")
		refreshed(ada)
		assert.Equal(t, "half of the na", browsertest.Evaluate[string](ada, `document.querySelector("details[open] input[name=confirm]").value`))
		assert.Equal(t, "Type "+image+" to confirm", ada.Focus())

		// Somebody who reads in what moves is not disturbed.
		browsertest.Evaluate[any](ada, `{ document.querySelector("[data-live] a").focus(); window.kept = document.activeElement; null }`)
		refreshed(other)
		refreshed(other)
		refreshed(other)
		assert.True(t, browsertest.Evaluate[bool](ada, `document.activeElement === window.kept`))

		// A hidden page does not read either.
		hide(ada, true)
		browsertest.Evaluate[any](ada, `{ document.activeElement.blur(); window.fetched = 0; const f = window.fetch; window.fetch = (...a) => { window.fetched++; return f(...a) }; null }`)
		refreshed(other)
		refreshed(other)
		refreshed(other)
		assert.Zero(t, browsertest.Evaluate[int](ada, `window.fetched`))
		hide(ada, false)
		ada.Waits(`window.fetched > 0`)
	})
}

// refreshed waits until a page has refreshed itself.
func refreshed(u *browsertest.User) {
	before := browsertest.Evaluate[string](u, `document.querySelector("#cost time").dateTime`)
	u.Waits(`document.querySelector("#cost time")?.dateTime !== ` + quote(before))
}

// hide makes a page believe that it is hidden, or visible again.
func hide(u *browsertest.User, hidden bool) {
	browsertest.Evaluate[any](u, fmt.Sprintf(`{
		Object.defineProperty(document, "hidden", {configurable: true, value: %v});
		document.dispatchEvent(new Event("visibilitychange"));
		null;
	}`, hidden))
}

func TestPagesAndActionsWorkWithoutScripts(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada", browsertest.NoScripts)
		ada.Open(w.url)
		ada.Sees("Needs attention", "ledger on order", " UTC")
		ada.Open(w.page("tail", "topic", "order"))
		ada.Sees("A live tail needs JavaScript.")
		ada.Open(w.page("topic", "name", "order"))
		ada.Sees("Topic order", "Newest events", "order.line-added.v1")

		ada.Open(w.page("group", "name", image, "topic", oddTopic))
		ada.Press("Pause…")
		ada.Press("Pause the group")
		ada.Sees("The group is paused.", "Resume…")
		g, err := w.Groups().Of(image, oddTopic).Status(t.Context())
		require.NoError(t, err)
		assert.True(t, g.Paused)
		ada.Press("Resume…")
		ada.Press("Resume the group")
		ada.Sees("The group continues within seconds.")
	})
}
