package main

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/examples/internal/apptest"
	"github.com/millrace-dev/millrace/examples/internal/browsertest"
	"github.com/millrace-dev/millrace/internal/testdb"
)

const anyAddress = "127.0.0.1:0"

func TestAnotherBrowserSeesAnOrderGoFromTheConsumerToTheCourier(t *testing.T) {
	t.Parallel()
	s := start(t, testdb.Client(t), false)
	ada, staff := chromium.User(t, "Ada"), chromium.User(t, "Staff")
	ada.Open(s.url)
	ada.Sees("Orders of ada", "ada has no orders here yet")
	staff.Open(s.url + "/?consumer=ada")
	s.expectsLateOrders(ada)

	ada.Press("Place an order")
	ada.Type("Restaurant", "  ")
	ada.Type("Dish", "<b>Naan</b>")
	ada.Type("How many", "2")
	ada.Type("Each costs", "3.50")
	ada.Expects("status 400")
	ada.Press("Send the order")
	ada.Sees("Restaurant: it must not be empty.")
	ada.Type("Restaurant", "Ajanta")
	ada.Press("Send the order")
	staff.Sees("Ajanta: ", "2 × <b>Naan</b>", "7.00", orderIs("Approval pending"), kitchenIs("Awaiting acceptance"), courierIs("Not asked yet"))

	ada.Press("Change: Ajanta")
	ada.Sees("Change the order from Ajanta", "<b>Naan</b>", "3.50")
	ada.Type("How many", "3")
	ada.Press("Send the change")
	staff.Sees("3 × <b>Naan</b>", "10.50")

	staff.Press("Accept: Ajanta")
	ada.Sees(orderIs("Approved"), kitchenIs("Accepted"), courierIs("Scheduled"))
	ada.SeesNo("Change\n", "Accept\n")
	staff.Press("Prepare: Ajanta")
	ada.Sees("Ajanta: kitchen preparing.", kitchenIs("Preparing"))
	staff.Press("Ready: Ajanta")
	staff.Press("Pick up: Ajanta")
	ada.Sees(kitchenIs("Ready for pickup"), courierIs("Picked up"))
	ada.Press("Deliver: Ajanta")
	staff.Sees("Ajanta: courier delivered.", courierIs("Delivered"))
}

func TestAnOrderEndsWithAReason(t *testing.T) {
	t.Parallel()
	s := start(t, testdb.Client(t), false)
	s.order("first", "Ajanta", "Naan")
	s.order("second", "Noodle Bar", "Ramen")
	ada := chromium.User(t, "Ada")
	ada.Open(s.url)

	ada.Press("Cancel: Ajanta")
	ada.Type("Reason", "not hungry")
	ada.Press("Cancel the order")
	ada.Sees("Reason: not hungry", orderIs("Cancelled"), kitchenIs("Cancelled"), courierIs("Not needed"))
	ada.Press("Decline: Noodle Bar")
	ada.Type("Reason", "sold out")
	ada.Press("Decline the order")
	ada.Sees("Reason: sold out", orderIs("Rejected"), kitchenIs("Declined"))
}

func TestAnActionThatCameTooLateSaysWhy(t *testing.T) {
	t.Parallel()
	s := start(t, testdb.Client(t), false)
	s.order("first", "Ajanta", "Naan")
	ada := chromium.User(t, "Ada")
	ada.Expects("status 409")
	ada.Open(s.url)
	ada.Press("Change: Ajanta")
	s.post("/orders/first/cancel", "{}")
	ada.Press("Send the change")
	ada.Sees("The order is cancelled, which does not allow this.")
	ada.Press("Close")
	ada.Sees(orderIs("Cancelled"))
	ada.SeesNo("which does not allow this")
}

func TestAFilterStaysInTheAddressAndHoldsForWhatChanges(t *testing.T) {
	t.Parallel()
	s := start(t, testdb.Client(t), false)
	s.order("first", "Ajanta", "Naan")
	s.order("second", "Noodle Bar", "Ramen")
	s.order("third", "Noodle Bar", "Gyoza")
	s.post("/orders/third/cancel", "{}")
	ada := chromium.User(t, "Ada")
	ada.Open(s.url)
	ada.Sees("Naan", "Ramen", "Gyoza")

	ada.Choose("Order", "APPROVAL_PENDING")
	ada.Type("Restaurant or dish", "noodle")
	ada.Press("Apply the filter")
	ada.SeesNo("Naan", "Gyoza")
	ada.Sees("2 × Ramen")
	ada.Reload()
	ada.Sees("2 × Ramen", "noodle", "Show all")
	ada.SeesNo("Naan", "Gyoza")

	s.post("/tickets/second/accept", "{}")
	ada.Sees("No order matches the filter.")
	s.order("fourth", "Noodle Bar", "Udon")
	ada.Sees("2 × Udon")
	ada.Press("Show all")
	ada.Sees("Naan", "Ramen", "Gyoza", "Udon")
	assert.NotContains(t, ada.URL(), "noodle")
	browsertest.Evaluate[any](ada, "history.back()")
	ada.SeesNo("Gyoza")
	ada.Sees("2 × Udon")
	browsertest.Evaluate[any](ada, "history.back()")
	ada.Sees("Naan", "Ramen", "Gyoza", "Udon")
}

func TestDaysOfTheFilterAreTheVisitorsAndBothAreShown(t *testing.T) {
	t.Parallel()
	s := start(t, testdb.Client(t), false)
	s.order("first", "Ajanta", "Naan")
	ada := chromium.User(t, "Ada")
	ada.Open(s.url)
	day := func(days int) string { // in the time zone of the browser
		return browsertest.Evaluate[string](ada, fmt.Sprintf(`new Date(Date.now() + %d * 86400e3).toLocaleDateString("sv")`, days))
	}
	for _, c := range []struct {
		from, to int
		shown    bool
	}{{-1, 1, true}, {-1, 0, true}, {0, 1, true}, {2, 3, false}, {-3, -2, false}} {
		ada.Open(fmt.Sprintf("%s/?from=%s&to=%s", s.url, day(c.from), day(c.to)))
		if c.shown {
			ada.Sees("2 × Naan")
		} else {
			ada.Sees("No order matches the filter.")
		}
	}
}

func TestALastDayBeforeTheFirstIsNotSent(t *testing.T) {
	t.Parallel()
	s := start(t, testdb.Client(t), false)
	s.order("first", "Ajanta", "Naan")
	ada := chromium.User(t, "Ada")
	ada.Open(s.url)
	ada.Sees("2 × Naan")
	browsertest.Evaluate[any](ada, `void (() => {
		const { from, to } = document.getElementById("filter").elements;
		[from.value, to.value] = ["2024-05-02", "2024-05-01"];
		from.dispatchEvent(new Event("input", { bubbles: true }));
	})()`)
	ada.Press("Apply the filter")
	ada.Waits(`document.activeElement.name === "to"`)
	assert.NotContains(t, ada.URL(), "2024")
}

func TestPagesAreTurnedThereAndBack(t *testing.T) {
	t.Parallel()
	s := start(t, testdb.Client(t), false)
	for _, dish := range []string{"Alfa", "Bravo", "Charlie", "Delta", "Echo"} {
		s.order(dish, "Ajanta", dish)
	}
	ada, ben := chromium.User(t, "Ada"), chromium.User(t, "Ben")
	ada.Open(s.url + "/?pageSize=2")
	ada.Sees("Echo", "Delta", "Older")
	ada.SeesNo("Newer", "Back to the newest", "Charlie")
	ada.Press("Older")
	ada.Sees("Charlie", "Bravo", "Newer", "Older")
	ada.SeesNo("Delta", "Alfa", "Back to the newest")
	ada.Waits(isFocused("title"))
	ada.Press("Older")
	ada.Sees("Alfa", "Newer", "Back to the newest")
	ada.SeesNo("Bravo", "Older")

	ada.Reload()
	ada.Sees("Alfa")
	ada.Press("Newer")
	ada.Sees("Charlie", "Bravo")
	ben.Open(ada.URL())
	ben.Sees("Charlie", "Bravo", "Older", "Back to the newest")
	ben.SeesNo("Newer")
	ben.Press("Back to the newest")
	ben.Sees("Echo", "Delta")
	ada.Press("Newer")
	ada.Sees("Echo", "Delta")
	browsertest.Evaluate[any](ada, "history.back()")
	ada.Sees("Charlie", "Bravo")
	s.post("/tickets/Bravo/accept", "{}")
	ada.Sees(kitchenIs("Accepted"))
}

func TestAnAddressThatCannotBeShownSaysWhy(t *testing.T) {
	t.Parallel()
	s := start(t, testdb.Client(t), false)
	s.order("first", "Ajanta", "Naan")
	ada := chromium.User(t, "Ada")
	ada.Expects("status 400")
	for query, reason := range map[string]string{
		"status=EATEN":                  "Status: it must be one of APPROVAL_PENDING",
		"from=yesterday":                "Since: it must be a day",
		"from=2024-05-02&to=2024-05-01": "until is not after since.",
		"pageToken=tomorrow":            "Invalid page token",
		"color=red":                     "Color is not a parameter here",
		"status=EATEN&status=EATEN":     "Status: it must be one of APPROVAL_PENDING",
		"consumer=%2e%2e%2f":            "Consumer: it must be letters, digits and",
	} {
		ada.Open(s.url + "/?" + query)
		ada.Sees(reason)
		ada.SeesNo("Naan")
		switch values, _ := url.ParseQuery(query); {
		case values.Has("consumer"):
			ada.Type("Orders of", "ada")
			ada.Press("Show")
		case values.Has("pageToken"):
			ada.Press("Back to the newest")
		default:
			ada.Press("Show all")
		}
		ada.Sees("2 × Naan")
		ada.SeesNo(reason)
	}
}

func TestAPageThatIsOpenGoesOnWhenTheServerIsBack(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	s := start(t, client, false)
	s.order("first", "Ajanta", "Naan")
	ada := chromium.User(t, "Ada")
	ada.Expects("net::ERR_")
	relay := apptest.NewRelay(t)
	relay.To(s.host())
	ada.Open("http://" + relay.Address())
	ada.Sees("2 × Naan")
	ada.SeesNo("Connection lost")

	relay.To("")
	s.stop()
	ada.Sees("Connection lost", "2 × Naan")
	ada.Press("Accept: Ajanta")
	ada.Sees("The server does not answer.")
	again := start(t, client, false)
	relay.To(again.host())
	ada.SeesNo("Connection lost")
	again.order("second", "Noodle Bar", "Ramen")
	ada.Sees("2 × Ramen")
	ada.Press("Accept: Ajanta")
	ada.Sees(orderIs("Approved"))
	ada.SeesNo("The server does not answer.")
}
