package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/internal/browsertest"
	"github.com/millrace-dev/millrace/internal/testdb"
)

var picture = flag.String("picture", "", "file for a picture of the page, as the README shows it")

func TestEverythingIsDoneWithTheKeyboard(t *testing.T) {
	t.Parallel()
	s := start(t, testdb.Client(t), false)
	ada := chromium.User(t, "Ada", small)
	s.expectsLateOrders(ada)
	ada.Open(s.url)
	ada.Sees("ada has no orders here yet")

	ada.TabTo("Place an order")
	ada.Keys(kb.Enter)
	ada.Sees("Send the order")
	assert.Equal(t, "Restaurant", ada.Focus())
	ada.Keys("Ajanta" + kb.Tab + "Naan" + kb.Tab)
	ada.TabTo("Each costs")
	ada.Keys("3.5" + kb.Enter)
	ada.Sees("1 × Naan", "3.50")
	// The order may be visible before the reply.
	ada.Waits(`!document.querySelector("dialog[open]")`)
	assert.Equal(t, "Place an order", ada.Focus())

	ada.TabTo("Accept: Ajanta")
	ada.Keys(kb.Enter)
	ada.Sees(orderIs("Approved"), courierIs("Scheduled"))
	id := browsertest.Evaluate[string](ada, "document.querySelector('.order').dataset.order")
	ada.Waits(isOrderFocused(id))
	ada.Keys(kb.Tab)
	assert.Equal(t, "Prepare: Ajanta", ada.Focus(), "who has done one thing is where the next one is")
	s.post("/tickets/"+id+"/prepare", "{}")
	ada.Sees(kitchenIs("Preparing"))
	ada.Waits(isOrderFocused(id))

	ada.Open(s.url)
	ada.TabTo("Filter")
	ada.Keys(kb.Enter)
	ada.TabTo("Restaurant or dish")
	ada.Keys("ramen" + kb.Enter)
	ada.Sees("No order matches the filter.")
	ada.TabTo("Show all")
	ada.Keys(kb.Enter)
	ada.Sees("1 × Naan")
}

func TestAChangeLeavesTheFocusWhereItIs(t *testing.T) {
	t.Parallel()
	s := start(t, testdb.Client(t), false)
	s.order("first", "Ajanta", "Naan")
	ada := chromium.User(t, "Ada", small)
	ada.Open(s.url)
	ada.Sees("2 × Naan")
	ada.TabTo("Decline: Ajanta")
	s.order("second", "Noodle Bar", "Ramen")
	s.post("/tickets/second/accept", "{}")
	ada.Sees("2 × Ramen", orderIs("Approved"))
	assert.Equal(t, "Decline: Ajanta", ada.Focus())
}

// small is a window in which the filter is closed.
var small = browsertest.Window(700, 800, 1)

func TestAPhoneShowsAllOfItWithoutScrollingToTheSide(t *testing.T) {
	t.Parallel()
	s := start(t, testdb.Client(t), false)
	s.order("first", "Ajanta", "Naan")
	s.order("second", "Noodle Bar", "Ramen")
	s.post("/tickets/second/accept", "{}")
	s.order(strings.Repeat("i", 100), strings.Repeat("Restaurant", 10), strings.Repeat("Lasagne", 15))
	ada := chromium.User(t, "Ada", browsertest.Phone)
	ada.Open(s.url + "/?pageSize=2")
	ada.Sees("RestaurantRestaurant", orderIs("Approval pending"), kitchenIs("Accepted"), courierIs("Scheduled"))
	assert.Equal(t, 360, browsertest.Evaluate[int](ada, "innerWidth"))
	ada.Readable()

	ada.Press("Filter")
	ada.Sees("Apply the filter")
	ada.Readable()
	ada.Press("Place an order")
	ada.Press("Another dish")
	const inside = `[...document.querySelectorAll("dialog[open], dialog[open] *")].every((e) => {
		const { left, right } = e.getBoundingClientRect();
		return left >= 0 && right <= 360;
	})`
	assert.True(t, browsertest.Evaluate[bool](ada, inside))
	ada.Press("Close")
	ada.Press("Older")
	ada.Sees("Newer")
	ada.Readable()
}

func TestTextStandsOutInLightAndDark(t *testing.T) {
	t.Parallel()
	s := start(t, testdb.Client(t), true)
	grounds := map[bool]string{}
	for dark, options := range map[bool][]browsertest.Option{false: {browsertest.Still}, true: {browsertest.Still, browsertest.Dark}} {
		ada := chromium.User(t, "Ada", options...)
		ada.Open(s.url + "?pageSize=20")
		ada.Sees(orderIs("Approval pending"), orderIs("Approved"), orderIs("Cancelled"), courierIs("Not needed"))
		ada.Readable()
		ada.Press("Place an order")
		ada.Readable()
		grounds[dark] = browsertest.Evaluate[string](ada, "getComputedStyle(document.body).backgroundColor")
	}
	assert.NotEqual(t, grounds[false], grounds[true])
}

func TestPictureForTheReadmeIsSmall(t *testing.T) {
	t.Parallel()
	s := start(t, testdb.Client(t), true)
	ada := chromium.User(t, "Ada", browsertest.Window(1000, 800, 1), browsertest.Still)
	ada.Open(s.url)
	ada.Sees("Orders of ada", orderIs("Approved"))
	image := ada.Picture()
	assert.Less(t, len(image), 150_000)
	if *picture != "" {
		require.NoError(t, os.WriteFile(*picture, image, 0o644))
	}
}
