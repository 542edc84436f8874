package services

import "github.com/millrace-dev/millrace/aggregate"

// Customer has a credit that orders reserve parts of.
type Customer struct {
	Credit   int            // that is left
	Reserved map[string]int // by order
	Released map[string]bool
}

// What happens to a customer.

type (
	// CreditGranted adds to the credit.
	CreditGranted struct{ Amount int }

	// CreditReserved sets a part aside for an order.
	CreditReserved struct {
		Order  string
		Amount int
	}

	// CreditRefused says that there is not enough.
	CreditRefused struct{ Order string }

	// CreditReleased gives that part back.
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

// Customers are the aggregates.
var Customers = aggregate.Define[Customer]("saga-customer", CreditGranted{}, CreditReserved{}, CreditRefused{}, CreditReleased{})

// Grant returns credit.
func Grant(amount int) aggregate.Decision[Customer] {
	return func(Customer) (aggregate.Events[Customer], error) {
		return aggregate.Events[Customer]{CreditGranted{amount}}, nil
	}
}

// Reserve sets credit aside for an order, or refuses to.
func Reserve(order string, amount int) aggregate.Decision[Customer] {
	return func(c Customer) (aggregate.Events[Customer], error) {
		if c.Credit < amount || c.Released[order] {
			return aggregate.Events[Customer]{CreditRefused{order}}, nil
		}
		return aggregate.Events[Customer]{CreditReserved{order, amount}}, nil
	}
}

// Release gives back what an order has reserved, or will have.
func Release(order string) aggregate.Decision[Customer] {
	return func(Customer) (aggregate.Events[Customer], error) {
		return aggregate.Events[Customer]{CreditReleased{order}}, nil
	}
}
