package readmodel

import (
	"context"
	"fmt"
)

// Generation is one copy of a read model. The zero value is no generation.
type Generation struct {
	Model  string // the name of the read model
	Number uint64 // from 1
	// Form is the one of [Config].Forms with which it was begun. A method of [Model] identifies the
	// generation by Model and Number, and ignores Form.
	Form string
}

// Group returns the name of its consumer group.
func (g Generation) Group() string { return fmt.Sprintf("%s.%d", g.Model, g.Number) }

// Table returns the name of the generation's copy of a table: "orders" becomes "orders_2", which
// needs no quotes in SQL.
func (g Generation) Table(name string) string { return fmt.Sprintf("%s_%d", name, g.Number) }

func (g Generation) String() string { return g.Group() }

// Generations returns the generations that are kept up to date, oldest first, the one that serves,
// and the one that served before.
func (m *Model) Generations(ctx context.Context) (Generations, error) {
	s, err := m.current(ctx)
	if err != nil {
		return Generations{}, err
	}
	return s.generations(m.config.Name), nil
}

// Generations lists the generations of a read model.
type Generations struct {
	Live     []Generation // those that exist, from old to new
	Serving  Generation   // the one that queries read
	Previous Generation   // the zero value if it was dropped, or if there was none
}

func (s state) generations(model string) Generations {
	g := Generations{Serving: s.generation(model, s.serving), Previous: s.generation(model, s.previous)}
	for _, n := range s.live {
		g.Live = append(g.Live, s.generation(model, n))
	}
	return g
}

func (s state) generation(model string, number uint64) Generation {
	if number == 0 {
		return Generation{}
	}
	return Generation{Model: model, Number: number, Form: s.forms[number]}
}

func (m *Model) generation(s state, number uint64) Generation {
	return s.generation(m.config.Name, number)
}

// names reports whether a generation has the given number in this model.
func (m *Model) names(g Generation, number uint64) bool {
	return g.Model == m.config.Name && g.Number == number
}

func (m *Model) isLive(s state, g Generation) bool {
	return g.Model == m.config.Name && s.isLive(g.Number)
}
