// Package aggregate is the domain side of Millrace: what an aggregate is, what can happen to it and how
// it decides. It knows no database and no broker, so everything in it can be tested in memory.
//
// Three things make an aggregate:
//
//   - its state S, a plain Go type whose zero value is the aggregate before its first event,
//   - its events, plain Go types with a stable name ([Event.EventType]) and an effect on the state
//     ([Event.Apply]),
//   - its decisions ([Decision]), functions from the state to new events, or to an error when the
//     command is refused.
//
// A [Definition] ties state and events together under the name of the aggregate type, and turns events
// into bytes and back with a [Codec]:
//
//	type Account struct{ Balance int }
//
//	type Deposited struct{ Amount int }
//
//	func (Deposited) EventType() string  { return "account.deposited.v1" }
//	func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }
//
//	var Accounts = aggregate.Define[Account]("account", Deposited{}, Withdrawn{})
//
//	func Withdraw(n int) aggregate.Decision[Account] {
//		return func(a Account) ([]aggregate.Event[Account], error) {
//			if a.Balance < n {
//				return nil, ErrInsufficientFunds
//			}
//			return []aggregate.Event[Account]{Withdrawn{n}}, nil
//		}
//	}
//
// The compiler keeps aggregates apart. An event belongs to the state that its Apply method takes, so the
// event of another aggregate does not compile, neither in a definition nor in a decision:
//
//	type OrderPlaced struct{}
//
//	func (OrderPlaced) EventType() string { return "order.placed.v1" }
//	func (OrderPlaced) Apply(*Order)      {}
//
//	aggregate.Define[Account]("account", OrderPlaced{})
//	// OrderPlaced does not implement aggregate.Event[Account] (wrong type for method Apply)
//
// # Rules for the domain code
//
// Events are stored for good. The name of an event type and the shape of its payload are a contract with
// every event that was ever written; a new shape gets a new name ("account.deposited.v2") and the old type
// stays in the definition for as long as its events do.
//
// Apply records what has happened: it cannot refuse, it must give the same state each time, and it must
// not look at clocks, random numbers or anything else outside. A panic in Apply is not recovered.
//
// A decision is pure. It may run several times for one command, since a conflict with another writer means
// that it decides again on the newer state; ids, times and prices that it needs are arguments of the
// function that makes it. It must not change the state it is given: S is passed by value, but maps, slices
// and pointers inside it are shared with the value the caller holds. The repository hands each run of a
// decision a copy of its own, so that a mistake here cannot reach a cached state, and the package
// aggregatetest finds it in a test.
//
// # Errors
//
// No function of this package panics on input. A [Definition] keeps its faults and [Definition.Validate]
// reports them all, so that it can be a package variable; what uses a definition validates it when it
// starts. The errors are [*DefinitionError], [*InvalidIDError], [*UnknownEventError],
// [*MalformedEventError] and [*UnencodableEventError], and each has a sentinel for errors.Is.
//
// The package aggregatetest holds the given-when-then kit that tests decisions without a database.
package aggregate
