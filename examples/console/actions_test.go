package main

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/internal/browsertest"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func orderID(id string) aggregate.ID { return aggregate.ID{Type: "order", Value: id} }

// group returns a group on the orders.
func (w *world) group(t *testing.T, name string) groups.Status {
	t.Helper()
	g, err := w.Groups().Of(name, "order").Status(t.Context())
	require.NoError(t, err)
	return g
}

// holdsUp reports whether an order blocks a group.
func (w *world) holdsUp(t *testing.T, group, id string) bool {
	t.Helper()
	for b, err := range w.Groups().Of(group, "order").Behind(t.Context(), aggregate.ID{}) {
		require.NoError(t, err)
		if b.Aggregate.Value == id {
			return true
		}
	}
	return false
}

// skipped returns the record of an event that a group has skipped, or nil if there is none.
func (w *world) skipped(t *testing.T, group, id string) *groups.SkippedEvent {
	t.Helper()
	for s, err := range w.Groups().Of(group, "order").Skipped(t.Context(), aggregate.ID{}, 0) {
		require.NoError(t, err)
		if s.Aggregate.Value == id {
			return &s
		}
	}
	return nil
}

func (w *world) applied(t *testing.T, group, id string) uint64 {
	t.Helper()
	n, err := w.Groups().Position(t.Context(), group, orderID(id))
	require.NoError(t, err)
	return n
}

// pending returns the pending timeouts and commands of a checkout.
func (w *world) pending(t *testing.T, id string) (all []process.Pending) {
	t.Helper()
	for p, err := range w.Backlog().Pending(t.Context(), process.BacklogQuery{Type: checkoutType, ID: id}) {
		require.NoError(t, err)
		all = append(all, p)
	}
	return all
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, patience, 20*time.Millisecond, what)
}

func TestAGroupIsPausedAndResumed(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		ada.Open(w.page("group", "name", "labels", "topic", "order"))
		ada.Press("Pause…")
		ada.Press("Pause the group")
		ada.Sees("The group is paused.", "Resume…")
		assert.True(t, w.group(t, "labels").Paused)
		ada.Waits(`document.querySelector(".facts .badge")?.textContent === "paused"`)

		ada.Press("Resume…")
		ada.Press("Resume the group")
		ada.Sees("The group continues within seconds.", "Pause…")
		assert.False(t, w.group(t, "labels").Paused)
	})
}

func TestAGroupIsPausedWithTheKeyboardAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		ada.Open(w.page("group", "name", "confirmations", "topic", "order"))
		ada.TabTo("Pause…")
		ada.Keys(kb.Enter)
		ada.TabTo("Pause the group")
		ada.Keys(kb.Enter)
		ada.Sees("The group is paused.")
		assert.True(t, w.group(t, "confirmations").Paused)
		ada.TabTo("Resume…")
		ada.Keys(" ")
		ada.TabTo("Resume the group")
		ada.Keys(" ")
		ada.Sees("The group continues within seconds.")
		assert.False(t, w.group(t, "confirmations").Paused)
	})
}

func TestAGroupIsResetOnceItsNameWasTyped(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada", browsertest.TimeZone("Asia/Tokyo"))
		ada.Expects("status 400")
		reset := func(choice, name string) {
			ada.Open(w.page("group", "name", "reports", "topic", "order"))
			ada.Press("Reset…")
			ada.Press(choice)
			ada.Type("Type reports to confirm", name)
		}
		before := w.group(t, "reports")
		reset("with the first event", "report")
		ada.Press("Reset the group")
		ada.Sees("Nothing was changed")
		assert.Equal(t, before, w.group(t, "reports"))

		reset("with events that are written from now on", "reports")
		ada.Press("Reset the group")
		ada.Sees("The group was reset.", "events since")
		now := w.group(t, "reports")
		assert.Equal(t, before.Resets+1, now.Resets)
		assert.False(t, now.Start.IsZero())

		reset("at a time (your time)", "reports")
		browsertest.Evaluate[any](ada, `{ document.querySelector("input[name=at]").value = "2026-02-03T04:05:06"; null }`)
		ada.Press("Reset the group")
		ada.Sees("The group was reset.", "events since")
		assert.Equal(t, time.Date(2026, 2, 2, 19, 5, 6, 0, time.UTC), w.group(t, "reports").Start.UTC())

		reset("with the first event", "reports")
		ada.Press("Reset the group")
		ada.Sees("The group was reset.", "the first event")
		assert.True(t, w.group(t, "reports").Start.IsZero())
	})
}

func TestParkedAggregatesAreRetriedSkippedAndReset(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		list := w.page("behind", "name", "shipping", "topic", "order")
		ada.Open(list)
		ada.Sees("parked-1 parked", "next: event 3", "no carrier takes "+odd(), "Leave it at the door. ")
		retried, passed, reset := "parked-1", "parked-2", "parked-3"

		w.faults.repair(retried)
		ada.PressIn(retried, "Retry…")
		ada.PressIn(retried, "Retry event 3")
		ada.Sees("The aggregate's events are tried again.")
		eventually(t, "the event is handled", func() bool { return w.applied(t, "shipping", retried) == 3 && !w.holdsUp(t, "shipping", retried) })

		ada.Open(list)
		ada.SeesNo("order " + retried)
		ada.PressIn(passed, "Skip…")
		ada.PressIn(passed, "Skip event 3")
		ada.Sees("Event 3 was skipped, and recorded.")
		ada.SeesNo("order " + passed)
		assert.Equal(t, uint64(3), w.applied(t, "shipping", passed))
		require.NotNil(t, w.skipped(t, "shipping", passed))
		ada.Open(w.page("skipped", "name", "shipping", "topic", "order"))
		ada.Sees("event 3 of order "+passed, "no carrier takes")

		ada.Open(list)
		ada.PressIn(reset, "Reset the aggregate…")
		ada.Type("Last event that counts as handled", "3")
		ada.Press("Reset the aggregate")
		ada.Sees("The group continues after event 3 of the aggregate.")
		ada.SeesNo("order " + reset)
		assert.Equal(t, uint64(3), w.applied(t, "shipping", reset))
		assert.Nil(t, w.skipped(t, "shipping", reset))
	})
}

func TestABlockedEventIsSkipped(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		ada.Open(w.page("behind", "name", "billing", "topic", "order"))
		ada.Sees("blocked-2 blocked", "no invoice for the note of blocked-2")
		ada.PressIn("blocked-2", "Skip…")
		ada.PressIn("blocked-2", "Skip event 3")
		ada.Sees("Event 3 was skipped, and recorded.")
		assert.NotNil(t, w.skipped(t, "billing", "blocked-2"))
		assert.Equal(t, uint64(3), w.applied(t, "billing", "blocked-2"))
	})
}

func TestAllParkedAggregatesOfASelectionAreRetriedOrSkipped(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		ada.Expects("status 400")
		page := w.page("group", "name", "shipping", "topic", "order")
		retried, passed := "parked-4", "parked-5"
		w.faults.repair(retried)
		ada.Open(page)
		ada.Press("Retry all parked…")
		ada.Type("Only where the reason contains", retried)
		ada.Type("Only for the event type", "order.noted.v1")
		ada.Press("Retry all parked")
		ada.Sees("1 aggregate is tried again.")
		eventually(t, "the event is handled", func() bool { return w.applied(t, "shipping", retried) == 3 })
		assert.True(t, w.holdsUp(t, "shipping", passed))

		for _, name := range []string{"ship", "shipping"} {
			ada.Open(page)
			ada.Press("Skip all parked…")
			ada.Type("Only where the reason contains", passed)
			ada.Type("Type shipping to confirm", name)
			ada.Press("Skip the failed events")
			if name != "shipping" {
				ada.Sees("Nothing was changed")
				assert.True(t, w.holdsUp(t, "shipping", passed))
			}
		}
		ada.Sees("1 event was skipped, and recorded.")
		assert.NotNil(t, w.skipped(t, "shipping", passed))
		assert.True(t, w.holdsUp(t, "shipping", "parked-6"), "it was not selected")
	})
}

func TestSkippedEventsAreRetriedAndForgotten(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		list := w.page("skipped", "name", "mails", "topic", "order")
		retried, forgotten, selected := "skipped-1", "skipped-2", "skipped-3"
		ada.Open(list)
		ada.Sees("event 3 of order "+retried, "the mail server refuses "+odd()+" of "+retried, "Leave it at the door. ")

		w.faults.repair(retried)
		ada.PressIn("event 3 of order "+retried, "Retry…")
		ada.PressIn("event 3 of order "+retried, "Retry event 3")
		ada.Sees("Event 3 is tried again.")
		eventually(t, "the event is handled", func() bool { return w.skipped(t, "mails", retried) == nil })
		ada.Open(list)
		ada.SeesNo("order " + retried)

		ada.PressIn("event 3 of order "+forgotten, "Forget…")
		ada.PressIn("event 3 of order "+forgotten, "Delete the record")
		ada.Sees("The record was deleted.")
		ada.SeesNo("order " + forgotten)
		assert.Nil(t, w.skipped(t, "mails", forgotten))

		w.faults.repair(selected)
		ada.Open(w.page("group", "name", "mails", "topic", "order"))
		ada.Press("Retry all skipped…")
		ada.Type("Only where the reason contains", selected)
		ada.Press("Retry all skipped")
		ada.Sees("1 event is tried again.")
		eventually(t, "the event is handled", func() bool { return w.skipped(t, "mails", selected) == nil })
		assert.NotNil(t, w.skipped(t, "mails", "skipped-4"), "it was not selected")
	})
}

func TestAGenerationServesAndTheOneBeforeAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		serving := func() uint64 {
			all, err := w.prices.Generations(t.Context())
			require.NoError(t, err)
			return all.Serving.Number
		}
		ada := chromium.User(t, "Ada")
		ada.Expects("status 409")
		ada.Open(w.page("models"))
		ada.Press("prices")
		ada.Press("Switch to generation 2…")
		ada.Press("Switch to generation 2")
		ada.Sees("Queries read generation 2.", "Roll back…")
		assert.Equal(t, uint64(2), serving())
		ada.Press("Roll back…")
		ada.Press("Roll back to generation 1")
		ada.Sees("Queries read generation 1 again.")
		assert.Equal(t, uint64(1), serving())

		ada.Open(w.page("model", "name", "totals"))
		ada.Sees("building")
		ada.Press("Switch to generation 2…")
		ada.Press("Switch to generation 2")
		ada.Sees("Not done")
		all, err := w.totals.Generations(t.Context())
		require.NoError(t, err)
		assert.Equal(t, uint64(1), all.Serving.Number)
	})
}

func TestATimeoutIsRetriedAndDropped(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ada := chromium.User(t, "Ada")
		ada.Open(w.page("processes"))
		ada.Sees("Timeout payment overdue", "nobody has decided what happens to unpaid orders "+image)
		before := w.pending(t, "overdue-1")
		require.Len(t, before, 1)
		ada.PressIn("overdue-1", "Retry…")
		ada.PressIn("overdue-1", "Retry now")
		ada.Sees("A manager tries it again within a second or two.")
		eventually(t, "it is tried again", func() bool { return w.pending(t, "overdue-1")[0].Attempts > before[0].Attempts })

		ada.Open(w.page("processes"))
		ada.PressIn("overdue-2", "Drop…")
		ada.PressIn("overdue-2", "Drop timeout/payment")
		ada.Sees("It was dropped.")
		ada.SeesNo("overdue-2")
		assert.Empty(t, w.pending(t, "overdue-2"))
	})
}

func TestStoredCommandsAreSentAndDropped(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		stored := func(id string) bool {
			for _, p := range w.pending(t, id) {
				if len(p.Commands) > 0 {
					return true
				}
			}
			return false
		}
		ada := chromium.User(t, "Ada")
		open := func(id string) {
			ada.Open(w.page("processes", "show", "open"))
			ada.Press("checkout " + id)
			ada.Sees("1 command not sent", "To commands", `"order": "`+id+`"`)
		}
		sent, dropped := "unsent-1", "unsent-2"
		open(sent)
		ada.PressIn("1 command not sent", "Retry…")
		ada.PressIn("1 command not sent", "Retry now")
		ada.Sees("A manager tries it again within a second or two.")
		w.faults.repair(sent) // before, the manager might send it before the button is pressed
		eventually(t, "the command is sent", func() bool { return !stored(sent) })
		eventually(t, "the command is executed", func() bool {
			p, err := w.payments.Load(t.Context(), sent)
			return err == nil && p.State.Amount == 100
		})

		open(dropped)
		ada.PressIn("1 command not sent", "Drop…")
		ada.Press("Drop " + w.pending(t, dropped)[0].Row)
		ada.Sees("It was dropped.")
		ada.SeesNo("1 command not sent")
		assert.False(t, stored(dropped))
	})
}
