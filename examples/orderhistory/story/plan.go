package story

import (
	"fmt"
	"math/rand/v2"

	"github.com/millrace-dev/millrace/examples/orderhistory/order"
)

// step is a command for the API.
type step struct {
	path string
	body any
	// tries limits the attempts while the aggregate does not exist; 0 means no limit.
	tries int
}

// planned is the plan of one order: it is placed, and then several actors send commands
// concurrently. The last steps come when they are done.
type planned struct {
	id     string
	create step
	actors [][]step
	last   []step
}

var (
	restaurants = []string{"Ajanta", "Chez Vin", "Green Garden", "Noodle Bar", "Pizza Vesuvio"}
	dishes      = []string{"Chicken Vindaloo", "Garlic Naan", "Green Curry", "Lasagne", "Miso Soup", "Pizza Bianca", "Steak Frites", "Tiramisu"}
)

// contendedEvery says how many orders the consumer and the kitchen change at once: one of five.
const contendedEvery = 5

// plan returns the plans for a seed. They do not depend on the results of the actors.
func plan(seed uint64, orders, consumers int) []planned {
	random := rand.New(rand.NewPCG(seed, 0))
	plans := make([]planned, orders)
	for n := range plans {
		id := fmt.Sprintf("order-%04d", n+1)
		plans[n] = planned{
			id: id,
			create: step{path: "/orders", body: map[string]any{
				"orderId": id, "consumerId": consumerID(random.IntN(consumers)), "restaurant": pick(random, restaurants), "lines": lines(random),
			}},
		}
		if n%contendedEvery == 0 {
			plans[n].contended(random)
		} else {
			plans[n].lifecycle(random)
		}
	}
	return plans
}

func consumerID(n int) string { return fmt.Sprintf("consumer-%d", n+1) }

// contended makes the consumer change an order while the kitchen works on it. Either can be first.
func (p *planned) contended(random *rand.Rand) {
	consumer := []step{p.revise(random), p.revise(random)}
	if random.IntN(2) == 0 {
		consumer = append(consumer, p.cancel())
	}
	p.actors = [][]step{consumer, p.kitchen("accept", "prepare", "accept", "ready")}
	// The kitchen has to accept the last revision, unless the order was cancelled.
	p.last = p.kitchen("accept")
	p.last = append(p.last, step{path: p.courier("pick-up"), tries: 50})
}

// lifecycle is one possible course of an order.
func (p *planned) lifecycle(random *rand.Rand) {
	var steps []step
	for range random.IntN(3) {
		steps = append(steps, p.revise(random))
	}
	switch random.IntN(8) {
	case 0:
		steps = append(steps, p.cancel())
	case 1:
		steps = append(steps, step{path: "/tickets/" + p.id + "/decline", body: map[string]string{"reason": "sold out"}})
	default:
		// The kitchen accepts the revision that it knows then. A later revision may have arrived
		// each time, so it accepts again.
		steps = append(steps, p.kitchen("accept")...)
		for _, then := range [][]step{
			p.kitchen("prepare"), p.kitchen("ready"), {{path: p.courier("pick-up"), tries: 50}}, {{path: p.courier("deliver"), tries: 1}}, {p.cancel()},
		}[:random.IntN(6)] {
			steps = append(steps, then...)
		}
	}
	p.actors = [][]step{steps}
}

func (p *planned) kitchen(commands ...string) (steps []step) {
	for _, command := range commands {
		steps = append(steps, step{path: "/tickets/" + p.id + "/" + command})
	}
	return steps
}

func (p *planned) courier(command string) string { return "/deliveries/" + p.id + "/" + command }

func (p *planned) revise(random *rand.Rand) step {
	return step{path: "/orders/" + p.id + "/revise", body: map[string]any{"lines": lines(random)}}
}

func (p *planned) cancel() step {
	return step{path: "/orders/" + p.id + "/cancel", body: map[string]string{"reason": "changed my mind"}}
}

func lines(random *rand.Rand) []order.Line {
	lines := make([]order.Line, 1+random.IntN(4))
	for i := range lines {
		lines[i] = order.Line{Name: pick(random, dishes), Quantity: 1 + random.Int64N(4), PriceCents: 200 + 5*random.Int64N(400)}
	}
	return lines
}

func pick(random *rand.Rand, from []string) string { return from[random.IntN(len(from))] }
