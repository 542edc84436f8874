// Package search keeps the products of a shop in full text indexes.
package search

import "github.com/millrace-dev/millrace/aggregate"

type (
	// Product is listed, described again, and withdrawn at the end.
	Product struct {
		Title, Text string
		Withdrawn   bool
	}
	// Listed is the first event of a product.
	Listed struct{ Title, Text string }
	// Described changes the text.
	Described struct{ Text string }
	// Withdrawn is the last event.
	Withdrawn struct{}
)

func (Listed) EventType() string    { return "product.listed.v1" }
func (Described) EventType() string { return "product.described.v1" }
func (Withdrawn) EventType() string { return "product.withdrawn.v1" }

func (e Listed) Apply(p *Product)    { p.Title, p.Text = e.Title, e.Text }
func (e Described) Apply(p *Product) { p.Text = e.Text }
func (Withdrawn) Apply(p *Product)   { p.Withdrawn = true }

// Products defines the products. Their topic is "product".
var Products = aggregate.Define[Product]("product", Listed{}, Described{}, Withdrawn{})

// Record returns a decision with the given events.
func Record(events ...aggregate.Event[Product]) aggregate.Decision[Product] {
	return func(Product) (aggregate.Events[Product], error) { return events, nil }
}
