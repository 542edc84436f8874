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
//	type Events = aggregate.Events[Account]
//
//	type Deposited struct{ Amount int }
//
//	func (Deposited) EventType() string  { return "account.deposited.v1" }
//	func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }
//
//	var Accounts = aggregate.Define[Account]("account", Deposited{}, Withdrawn{})
//
//	func Withdraw(n int) aggregate.Decision[Account] {
//		return func(a Account) (Events, error) {
//			if a.Balance < n {
//				return nil, ErrInsufficientFunds
//			}
//			return Events{Withdrawn{n}}, nil
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
// every event that was ever written. A field may be added, since old payloads leave it zero; any other new
// shape gets a new name ("account.deposited.v2").
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
// # Evolution
//
// When an event type gets a new name, its stored events stay as they are. Either the old Go type stays in
// the definition for as long as they do, or an [Upcaster] turns them into events of today as they are read,
// so that Apply methods know today's events alone:
//
//	var Accounts = aggregate.Define[Account]("account", Deposited{}, Withdrawn{}).WithUpcasters(
//		aggregate.Upcast("account.deposited.v1", func(old depositedV1) Deposited {
//			return Deposited{Amount: old.Cents, Currency: "EUR"}
//		}),
//		aggregate.Rename("account.taken.v1", "account.withdrawn.v1"),
//		aggregate.Drop("account.viewed.v1"),
//	)
//
// [Upcast] makes one event of one, [Split] zero or several, [UpcastRaw] works on bytes, and
// [Upcaster.WithCodec] reads what another codec has written. What an upcaster gives may be read by the next, so
// a chain from v1 to v3 need not know v1 and v3 at once. It is a matter of reading: nothing is written, the
// history keeps its numbers, and one stored event is one version, whatever it becomes. Roll a new event type
// out to the readers first: a program that lacks it cannot load an aggregate that has one.
//
// An upcaster that is in use must not change what it gives. States that were stored with its help, snapshots
// and read models, would differ from those that a replay makes. Where it must, for it was wrong, discard them:
// give the state a new schema version where it is stored, and rebuild the read models.
//
// [Definition.Replay] does all of this for a load; [Definition.Upcast] for readers that have no state.
//
// # Errors
//
// No function of this package panics on input. A [Definition] keeps its faults and [Definition.Validate]
// reports them all, so that it can be a package variable; what uses a definition validates it when it
// starts. The errors are [*DefinitionError], [*InvalidIDError], [*UnknownEventError],
// [*MalformedEventError], [*UpcastError] and [*UnencodableEventError], and each has a sentinel for errors.Is.
//
// The package aggregatetest holds the given-when-then kit that tests decisions without a database.
package aggregate
