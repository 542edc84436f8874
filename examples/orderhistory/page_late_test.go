package main

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/internal/browsertest"
)

// lateView returns a site whose history shows nothing new until goOn is called.
func lateView(t *testing.T) (s *site, late, goOn func()) {
	t.Helper()
	db := dynamotest.New(t)
	s = start(t, db.Client(), false)
	released := make(chan struct{})
	goOn = sync.OnceFunc(func() { close(released) })
	t.Cleanup(goOn) // before the site is stopped
	return s, func() {
		// The transaction is held until goOn, not until its context ends. The context ends when an
		// attempt of the projection takes too long, and then the history would show the event.
		db.Inject(dynamotest.Hold(func(context.Context) { <-released }),
			dynamotest.Table("ftgo-order-history"), dynamotest.On("TransactWriteItems"))
	}, goOn
}

// fill fills in the dialog for an order.
func fill(u *browsertest.User, restaurant, dish, price string) {
	u.Press("Place an order")
	u.Type("Restaurant", restaurant)
	u.Type("Dish", dish)
	u.Type("Each costs", price)
}

const orders = `document.querySelectorAll(".order").length`

func TestAnOrderThatDoesNotShowYetIsNotPlacedAgain(t *testing.T) {
	t.Parallel()
	s, late, goOn := lateView(t)
	ada := chromium.User(t, "Ada")
	s.expectsLateOrders(ada)
	ada.Open(s.url)
	ada.Sees("ada has no orders here yet")
	late()

	fill(ada, "Ajanta", "Naan", "3.50")
	ada.Press("Send the order")
	const onItsWay = "Your order from Ajanta was accepted and is on its way."
	ada.Sees(onItsWay, "ada has no orders here yet")
	ada.Reload()
	ada.Sees(onItsWay)
	fill(ada, "Ajanta", "Naan", "3.50")
	ada.Press("Send the order")
	ada.Waits(`!document.querySelector("dialog[open]")`)
	ada.Sees(onItsWay)
	goOn()
	ada.Sees("1 × Naan")
	ada.SeesNo(onItsWay)

	fill(ada, "Ajanta", "Rice", "2.80")
	ada.Press("Send the order")
	ada.Sees("1 × Rice")
	assert.Equal(t, 2, browsertest.Evaluate[int](ada, orders), "the first order must have been placed once")
	fill(ada, "Ajanta", "Rice", "2.80")
	ada.Press("Send the order")
	// The first order is visible, so this is another one.
	ada.Waits(orders + " === 3")
}

// loseAnswer makes the page lose the reply to its next command. The command takes effect.
const loseAnswer = `void (() => {
	const real = window.fetch;
	window.fetch = async (path, options) => {
		const answer = await real(path, options);
		if (options.method !== "POST") return answer;
		window.fetch = real;
		throw new TypeError("the connection broke");
	};
})()`

func TestAnOrderWithoutAnAnswerIsSentAgainAndPlacedOnce(t *testing.T) {
	t.Parallel()
	s, _, _ := lateView(t)
	ada := chromium.User(t, "Ada")
	ada.Expects("status 422")
	s.expectsLateOrders(ada)
	ada.Open(s.url)
	ada.Sees("ada has no orders here yet")

	fill(ada, "Ajanta", "Naan", "3.50")
	browsertest.Evaluate[any](ada, loseAnswer)
	ada.Press("Send the order")
	ada.Sees("The server does not answer. Send it again: it takes effect only once.")
	ada.Reload()
	ada.Sees("1 × Naan")
	ada.Press("Place an order")
	ada.Sees("There was no answer to this order.", "Ajanta", "Naan", "3.50")
	ada.Press("Send the order")
	ada.Waits(`!document.querySelector("dialog[open]")`)

	fill(ada, "Ajanta", "Rice", "2.80")
	browsertest.Evaluate[any](ada, loseAnswer)
	ada.Press("Send the order")
	ada.Sees("The server does not answer.")
	ada.Type("Dish", "Wild Rice")
	ada.Press("Send the order")
	ada.Sees("The order that you sent before was accepted. To place this one as well, send it again.")
	ada.Press("Send the order")
	ada.Sees("1 × Naan", "1 × Rice", "1 × Wild Rice")
	assert.Equal(t, 3, browsertest.Evaluate[int](ada, orders))
}

func TestACommandThatDoesNotShowYetCanBeSentAgain(t *testing.T) {
	t.Parallel()
	s, late, goOn := lateView(t)
	s.order("first", "Ajanta", "Naan")
	ada := chromium.User(t, "Ada")
	ada.Open(s.url)
	ada.Sees(kitchenIs("Awaiting acceptance"))
	late()
	const onItsWay = "“Accept” for Ajanta was accepted and is on its way."
	for range 2 {
		ada.Press("Accept: Ajanta")
		ada.Waits(`!document.querySelector("[aria-busy]")`)
		ada.Sees(onItsWay, kitchenIs("Awaiting acceptance"))
		ada.SeesNo("which does not allow this")
	}
	goOn()
	ada.Sees(orderIs("Approved"))
	ada.SeesNo(onItsWay)
}

func TestTextOfAnyDirectionStaysInItsPlace(t *testing.T) {
	t.Parallel()
	s, _, _ := lateView(t)
	s.order("first", "שווארמה", "فلافل")
	ada := chromium.User(t, "Ada")
	ada.Expects("status 400")
	ada.Open(s.url)
	ada.Sees("2 × فلافل", "שווארמה")
	for _, text := range []string{"שווארמה", "فلافل"} {
		assert.True(t, browsertest.Evaluate[bool](ada, fmt.Sprintf(
			`[...document.querySelectorAll(".order bdi")].some((e) => e.textContent === %q)`, text)), text)
	}
	fill(ada, "שווארמה", "Naan\u202e", "3.50")
	assert.Equal(t, "rtl", browsertest.Evaluate[string](ada, `getComputedStyle(document.querySelector("[name=restaurant]")).direction`))
	ada.Press("Send the order")
	ada.Sees("Dish 1, name: it has an invisible character (U+202E), remove it or type the name again.")
}
