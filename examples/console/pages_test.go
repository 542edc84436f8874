package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/examples/internal/browsertest"
)

// page returns the link of a page with parameters.
func (w *world) page(name string, pairs ...string) string {
	query := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return w.url + name + "?" + query.Encode()
}

// pages are links of all kinds of pages.
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

// errorPages are links of pages that say what is wrong.
func (w *world) errorPages() []string {
	return []string{
		w.page("nothing"), w.page("aggregate", "type", odd(), "id", odd()), w.page("aggregate", "type", "order"), w.page("group", "name", odd(), "topic", odd()),
		w.page("model", "name", odd()), w.page("processes", "show", script), w.page("aggregates", "type", "order", "after", script),
		w.page("aggregate", "type", "order", "id", large, "at", script), w.page("aggregate", "type", "order", "id", large, "to", script),
	}
}

func TestEachPageCanBeReadAndRunsNoneOfItsTexts(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		light := chromium.User(t, "Ada", browsertest.Still)
		dark := chromium.User(t, "Ben", browsertest.Phone, browsertest.Dark, browsertest.Still)
		for _, u := range []*browsertest.User{light, dark} {
			u.Expects("status 400", "status 404")
			for _, page := range append(w.pages(), w.errorPages()...) {
				u.Open(page)
				// As they are, and with all that can be opened.
				u.Readable()
				browsertest.Evaluate[any](u, `document.querySelectorAll("details").forEach((d) => { d.open = true })`)
				u.Readable()
				assert.Empty(t, browsertest.Evaluate[string](u, harm), page)
				if t.Failed() {
					t.Fatal(page)
				}
			}
		}
	})
}

// harm is what a page has done or would do that it should not.
const harm = `(() => {
	const links = [...document.querySelectorAll("a, form")].map((e) => new URL(e.getAttribute("href") ?? e.getAttribute("action"), location.href).href).filter((link) => !link.startsWith(location.origin + "/"));
	const loaded = performance.getEntriesByType("resource").map((e) => e.name).filter((name) => !name.startsWith(location.origin + "/"));
	const injected = [...document.querySelectorAll("main script, img, iframe, main style")].map((e) => e.outerHTML);
	return [window.owned, ...links, ...loaded, ...injected].filter(Boolean).join("\n");
})()`

func TestTheOverviewListsEachTroubleAndLeadsToIt(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		for concern, leads := range map[string]struct{ path, sees string }{
			"ledger on order: event 3 of order stopping-1 has stopped the group: the books do not balance ": {"group?name=ledger&topic=order", "Stopped by an event"},
			"billing on order: ":                      {"behind?name=billing&topic=order", "blocked-2 blocked"},
			"shipping on order: ":                     {"behind?name=shipping&topic=order", "parked-1 parked"},
			"exports on order: 1 member has sent no":  {"group?name=exports&topic=order", "lost"},
			"reports on order: no member handles its": {"group?name=reports&topic=order", "Nobody handles this group's events"},
			"checkout: ":                              {"processes?type=checkout", "Timeout payment overdue"},
			"mails on order: ":                        {"skipped?name=mails&topic=order", "event 3 of order skipped-1"},
			"search on order: paused by an operator":  {"group?name=search&topic=order", "Resume…"},
		} {
			ada.Open(w.url)
			ada.Sees(strings.TrimSpace(concern))
			ada.Waits(`(() => {
				const found = [...document.querySelectorAll(".concerns a")].filter((a) => a.textContent.startsWith(` + quote(concern) + `));
				if (found.length !== 1) return false;
				found[0].click();
				return true;
			})()`)
			ada.Waits(`location.href.startsWith(` + quote(w.url+leads.path) + `)`)
			ada.Sees(leads.sees)
		}
	})
}
