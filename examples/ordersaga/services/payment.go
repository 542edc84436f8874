package services

import "github.com/millrace-dev/millrace/aggregate"

// Payment is the payment of one order, and has its id.
type Payment struct{ Decided bool }

// These are the events of a payment.

type (
	// PaymentAuthorised records that the bank will pay.
	PaymentAuthorised struct{ Amount int }

	// PaymentRefused records that the bank will not pay.
	PaymentRefused struct{ Amount int }
)

func (PaymentAuthorised) EventType() string { return "payment.authorised.v1" }
func (PaymentRefused) EventType() string    { return "payment.refused.v1" }
func (PaymentAuthorised) Apply(p *Payment)  { p.Decided = true }
func (PaymentRefused) Apply(p *Payment)     { p.Decided = true }

// Payments defines the aggregate.
var Payments = aggregate.Define[Payment]("saga-payment", PaymentAuthorised{}, PaymentRefused{})

// CardLimit is the largest amount that the bank of the example authorises.
const CardLimit = 500

// Authorise returns a decision that authorises or refuses a payment.
func Authorise(amount int) aggregate.Decision[Payment] {
	return func(p Payment) (aggregate.Events[Payment], error) {
		switch {
		case p.Decided:
			return nil, nil
		case amount > CardLimit:
			return aggregate.Events[Payment]{PaymentRefused{amount}}, nil
		}
		return aggregate.Events[Payment]{PaymentAuthorised{amount}}, nil
	}
}
