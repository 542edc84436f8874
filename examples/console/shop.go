package main

import (
	"errors"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
)

// An order has lines. Its customer pays for it.
type (
	Order struct {
		Customer string    `json:"customer"`
		PayBy    time.Time `json:"pay_by"`
		Lines    []Line    `json:"lines"`
		Total    int       `json:"total"`
		Note     string    `json:"note"`
		State    string    `json:"state"`
	}
	Line struct {
		Item     string `json:"item"`
		Quantity int    `json:"quantity"`
		Price    int    `json:"price"`
	}

	Placed struct {
		Customer string `json:"customer"`
		// Zero means that the shop does not ask for a payment.
		PayBy time.Time `json:"pay_by"`
	}
	LineAdded struct{ Line }
	Noted     struct {
		Text string `json:"text"`
	}
	Confirmed struct{}
	// Scanned has a type with a text that was scanned from a label.
	Scanned struct {
		Label string `json:"label"`
	}

	decisionOnPayment = aggregate.Decision[Payment]
	paymentEvents     = aggregate.Events[Payment]
	Decision          = aggregate.Decision[Order]
	events            = aggregate.Events[Order]
)

func (Placed) EventType() string    { return "order.placed.v1" }
func (LineAdded) EventType() string { return "order.line-added.v1" }
func (Noted) EventType() string     { return "order.noted.v1" }
func (Confirmed) EventType() string { return "order.confirmed.v1" }
func (Scanned) EventType() string   { return "order.scanned" + image }

func (e Placed) Apply(o *Order) { o.Customer, o.PayBy, o.State = e.Customer, e.PayBy, "placed" }
func (e LineAdded) Apply(o *Order) {
	o.Lines = append(o.Lines, e.Line)
	o.Total += e.Quantity * e.Price
}
func (e Noted) Apply(o *Order)   { o.Note = e.Text }
func (Confirmed) Apply(o *Order) { o.State = "confirmed" }
func (e Scanned) Apply(o *Order) { o.Note = e.Label }

var orders = aggregate.Define[Order]("order", Placed{}, LineAdded{}, Noted{}, Confirmed{}, Scanned{})

// record returns a decision that always returns these events.
func record(e ...aggregate.Event[Order]) Decision {
	return func(Order) (events, error) { return e, nil }
}

func confirm(o Order) (events, error) {
	if o.State != "placed" {
		return nil, nil
	}
	return events{Confirmed{}}, nil
}

// A payment is captured by the bank.
type (
	Payment struct {
		Amount   int  `json:"amount"`
		Captured bool `json:"captured"`
	}
	Requested struct {
		Amount int `json:"amount"`
	}
	Captured struct{}
)

func (Requested) EventType() string  { return "payment.requested.v1" }
func (Captured) EventType() string   { return "payment.captured.v1" }
func (e Requested) Apply(p *Payment) { p.Amount = e.Amount }
func (Captured) Apply(p *Payment)    { p.Captured = true }

var payments = aggregate.Define[Payment]("payment", Requested{}, Captured{})

// A customer is a person, whose data is encrypted. The cards of customers are encrypted too, with
// keys that only the billing service has.
type (
	Customer struct {
		Name string `json:"name"`
	}
	Registered struct {
		Name string `json:"name"`
	}
	Card struct {
		Digits string `json:"digits"`
	}
	Issued struct {
		Digits string `json:"digits"`
	}
)

func (Registered) EventType() string   { return "customer.registered.v1" }
func (e Registered) Apply(c *Customer) { c.Name = e.Name }
func (Issued) EventType() string       { return "card.issued.v1" }
func (e Issued) Apply(c *Card)         { c.Digits = e.Digits }

var (
	customers = aggregate.Define[Customer]("customer", Registered{})
	cards     = aggregate.Define[Card]("card", Issued{})
)

// A checkout is the process that requests the payment of an order, and waits for it.
type (
	Checkout struct {
		Asked bool `json:"asked"`
		Paid  bool `json:"paid"`
	}
	PaymentAsked    struct{}
	PaymentReceived struct{}

	RequestPayment struct {
		Order    string `json:"order"`
		Customer string `json:"customer"`
	}
)

func (PaymentAsked) EventType() string    { return "checkout.payment-asked.v1" }
func (PaymentReceived) EventType() string { return "checkout.payment-received.v1" }
func (PaymentAsked) Apply(c *Checkout)    { c.Asked = true }
func (PaymentReceived) Apply(c *Checkout) { c.Paid = true }
func (RequestPayment) EventType() string  { return "request-payment" }

const (
	checkoutType   = "checkout"
	paymentTimeout = "payment"
)

// defineCheckout returns the definition of the process. Its timeout fails with a reason.
func defineCheckout(reason string) process.Definition[Checkout] {
	return process.Define(aggregate.Define[Checkout](checkoutType, PaymentAsked{}, PaymentReceived{}),
		process.On(func(e Placed, in process.Input) string {
			if e.PayBy.IsZero() {
				return ""
			}
			return in.Source.Value
		}, func(_ Checkout, e Placed, in process.Input) (process.Step[Checkout], error) {
			return process.Record(PaymentAsked{}).Send(RequestPayment{in.Process, e.Customer}).SetTimeoutAt(paymentTimeout, e.PayBy), nil
		}).Starts(),
		process.On(func(_ Captured, in process.Input) string { return in.Source.Value },
			func(Checkout, Captured, process.Input) (process.Step[Checkout], error) {
				return process.Record(PaymentReceived{}).CancelTimeout(paymentTimeout), nil
			}),
		process.OnTimeout(paymentTimeout, func(Checkout, process.Input) (process.Step[Checkout], error) {
			return process.Step[Checkout]{}, errors.New(reason)
		}),
	).EndsWhen(func(c Checkout) bool { return c.Paid })
}

// The page must show these texts as they are.
const (
	script = `<script>window.owned=1</script>`
	image  = `"><img src=x onerror=window.owned=1>`
	link   = `javascript:window.owned=1`
	curly  = `{{.}}`
	ending = `</script></pre></textarea>`
)

// odd joins all of these texts.
func odd() string { return strings.Join([]string{script, image, link, curly, ending}, " ") }
