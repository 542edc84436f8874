package services

import "github.com/millrace-dev/millrace/aggregate"

// Customer has credit. Orders reserve parts of it.
type Customer struct {
	Credit   int            // remaining credit
	Reserved map[string]int // reserved credit by order
	Released map[string]bool
}

// These are the events of a customer.

type (
	// CreditGranted adds to the credit.
	CreditGranted struct{ Amount int }

	// CreditReserved reserves a part of the credit for an order.
	CreditReserved struct {
		Order  string
		Amount int
	}

	// CreditRefused records that there is not enough credit.
	CreditRefused struct{ Order string }

	// CreditReleased returns the reserved credit of an order.
	CreditReleased struct{ Order string }
)

func (CreditGranted) EventType() string  { return "customer.credit-granted.v1" }
func (CreditReserved) EventType() string { return "customer.credit-reserved.v1" }
func (CreditRefused) EventType() string  { return "customer.credit-refused.v1" }
func (CreditReleased) EventType() string { return "customer.credit-released.v1" }

func (e CreditGranted) Apply(c *Customer) { c.Credit += e.Amount }
func (CreditRefused) Apply(*Customer)     {}

func (e CreditReserved) Apply(c *Customer) {
	if c.Reserved == nil {
		c.Reserved = map[string]int{}
	}
	c.Reserved[e.Order] = e.Amount
	c.Credit -= e.Amount
}

func (e CreditReleased) Apply(c *Customer) {
	if c.Released == nil {
		c.Released = map[string]bool{}
	}
	c.Released[e.Order] = true
	c.Credit += c.Reserved[e.Order]
	delete(c.Reserved, e.Order)
}

// Customers defines the aggregate.
var Customers = aggregate.Define[Customer]("saga-customer", CreditGranted{}, CreditReserved{}, CreditRefused{}, CreditReleased{})

// Grant returns a decision that adds credit.
func Grant(amount int) aggregate.Decision[Customer] {
	return func(Customer) (aggregate.Events[Customer], error) {
		return aggregate.Events[Customer]{CreditGranted{amount}}, nil
	}
}

// Reserve returns a decision that reserves credit for an order, or refuses to.
func Reserve(order string, amount int) aggregate.Decision[Customer] {
	return func(c Customer) (aggregate.Events[Customer], error) {
		if c.Credit < amount || c.Released[order] {
			return aggregate.Events[Customer]{CreditRefused{order}}, nil
		}
		return aggregate.Events[Customer]{CreditReserved{order, amount}}, nil
	}
}

// Release returns a decision that releases the credit of an order, even if it is reserved later.
func Release(order string) aggregate.Decision[Customer] {
	return func(Customer) (aggregate.Events[Customer], error) {
		return aggregate.Events[Customer]{CreditReleased{order}}, nil
	}
}
