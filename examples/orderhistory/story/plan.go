package story

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/examples/orderhistory/order"
)

// planned is what happens to one order: it is created, and then each writer carries out commands of its
// own, several writers at once.
type planned struct {
	id      string
	details order.Details
	writers [][]order.Decision
}

func (p planned) commands() int {
	n := 1
	for _, commands := range p.writers {
		n += len(commands)
	}
	return n
}

var (
	restaurants = []string{"Ajanta", "Chez Vin", "Green Garden", "Noodle Bar", "Pizza Vesuvio"}
	dishes      = []string{"Chicken Vindaloo", "Garlic Naan", "Green Curry", "Lasagne", "Miso Soup", "Pizza Bianca", "Steak Frites", "Tiramisu"}
	opening     = time.Date(2024, 5, 1, 11, 0, 0, 0, time.UTC)
)

// contendedEvery is how many orders there are for each one that two writers change at once.
const contendedEvery = 5

// plan is the same for the same seed, whatever the writers make of it.
func plan(seed uint64, orders, consumers int) []planned {
	random := rand.New(rand.NewPCG(seed, 0))
	plans := make([]planned, orders)
	placed := opening
	for n := range plans {
		if n%7 > 0 { // some orders are placed in the same millisecond
			placed = placed.Add(time.Duration(1+random.IntN(600_000)) * time.Millisecond)
		}
		plans[n] = planned{
			id: fmt.Sprintf("order-%04d", n+1),
			details: order.Details{
				ConsumerID: consumerID(random.IntN(consumers)), Restaurant: pick(random, restaurants),
				Lines: lines(random), CreatedAt: placed,
			},
			writers: [][]order.Decision{lifecycle(random)},
		}
		if n%contendedEvery == 0 {
			plans[n].writers = [][]order.Decision{
				{order.Approve(), order.PickUp(), order.Deliver()},
				{revise(random), revise(random), order.Cancel("waited too long")},
			}
		}
	}
	return plans
}

func consumerID(n int) string { return fmt.Sprintf("consumer-%d", n+1) }

// lifecycle is one of the ways an order can go, with revisions on it.
func lifecycle(random *rand.Rand) (commands []order.Decision) {
	steps := []order.Decision{order.Approve(), order.PickUp(), order.Deliver()}
	for _, step := range steps[:random.IntN(len(steps)+1)] {
		if random.IntN(4) == 0 {
			commands = append(commands, revise(random)) // refused once the order is picked up
		}
		commands = append(commands, step)
	}
	if random.IntN(5) == 0 {
		commands = append(commands, order.Cancel("changed my mind")) // likewise
	}
	return commands
}

func revise(random *rand.Rand) order.Decision { return order.Revise(lines(random)) }

func lines(random *rand.Rand) order.Lines {
	lines := make(order.Lines, 1+random.IntN(4))
	for i := range lines {
		lines[i] = order.Line{Name: pick(random, dishes), Quantity: 1 + random.Int64N(4), PriceCents: 200 + 5*random.Int64N(400)}
	}
	return lines
}

func pick(random *rand.Rand, from []string) string { return from[random.IntN(len(from))] }
