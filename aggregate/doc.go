// Package aggregate is the domain side of Millrace. It defines what an aggregate is, which events
// change it and how it decides. It uses no database and no broker, so everything in it can be
// tested in memory.
//
// An aggregate has three parts:
//
//   - its state S, a plain Go type whose zero value is the aggregate before its first event,
//   - its events, plain Go types with a stable name ([Event.EventType]) and an effect on the state
//     ([Event.Apply]),
//   - its decisions ([Decision]), functions from the state to new events, or to an error that
//     refuses the command.
//
// A [Definition] ties state and events together under the name of the aggregate type. It encodes
// and decodes events with a [Codec]:
//
//	type Account struct{ Balance int }
//
//	type (
//		Events   = aggregate.Events[Account]
//		Decision = aggregate.Decision[Account]
//	)
//
//	type Deposited struct{ Amount int }
//
//	func (Deposited) EventType() string  { return "account.deposited.v1" }
//	func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }
//
//	var Accounts = aggregate.Define[Account]("account", Deposited{}, Withdrawn{})
//
//	func Withdraw(n int) Decision {
//		return func(a Account) (Events, error) {
//			if a.Balance < n {
//				return nil, ErrInsufficientFunds
//			}
//			return Events{Withdrawn{n}}, nil
//		}
//	}
//
// The aliases are optional. A package with several aggregates writes
// aggregate.Events[Account]{Withdrawn{n}}.
//
// The compiler keeps aggregates apart. An event belongs to the state that its Apply method takes.
// The event of another aggregate does not compile, neither in a definition nor in a decision:
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
// Events are stored for good. The name of an event type and the shape of its payload are a contract
// with every event that was ever written. A field may be added, because old payloads leave it zero.
// Any other change of the shape gets a new name ("account.deposited.v2").
//
// Apply records what has happened. It cannot refuse, it must lead to the same state each time, and
// it must not use clocks, random numbers or anything else outside. A panic in Apply is not
// recovered.
//
// A decision is a pure function. It may run several times for one command, because after a conflict
// with another writer it decides again on the newer state. Ids, times and prices that it needs are
// arguments of the function that makes it. A decision must not change its state. S is passed by
// value, but maps, slices and pointers in it are shared with the value of the caller. A repository
// passes each run of a decision a copy, so that a mistake here cannot reach a cached state, and the
// package aggregatetest finds such a mistake in a test.
//
// # Evolution
//
// When an event type gets a new name, its stored events stay as they are. Either the old Go type
// stays in the definition for as long as they do, or an [Upcaster] turns them into events of today
// when they are read, so that Apply methods need to know only today's events:
//
//	var Accounts = aggregate.Define[Account]("account", Deposited{}, Withdrawn{}).WithUpcasters(
//		aggregate.Upcast("account.deposited.v1", func(old depositedV1) Deposited {
//			return Deposited{Amount: old.Cents, Currency: "EUR"}
//		}),
//		aggregate.Rename("account.taken.v1", "account.withdrawn.v1"),
//		aggregate.Drop("account.viewed.v1"),
//	)
//
// [Upcast] makes one event of one, [Split] makes zero or several, [UpcastRaw] works on bytes, and
// [Upcaster.WithCodec] reads what another codec has written. The result of an upcaster may be the
// input of the next, so a chain from v1 to v3 need not know v1 and v3 at once. Upcasters only
// affect reading. Nothing is written, the history keeps its numbers, and one stored event is one
// version, even if it becomes several events or none. Deploy a new event type to the readers first:
// a program that lacks it cannot load an aggregate that has one.
//
// Do not change the result of an upcaster that is in use. States that were stored with its help,
// snapshots and read models, would differ from those of a replay. If the result was wrong and has
// to change, discard them: give the state a new schema version where it is stored, and rebuild the
// read models.
//
// [Definition.Replay] applies upcasters for a load, [Definition.Upcast] for readers without a
// state.
//
// # Errors
//
// No function of this package panics on input. A [Definition] keeps its faults and
// [Definition.Validate] reports them all, so a package variable can hold a definition. What uses a
// definition validates it at the start. The errors are [*DefinitionError], [*InvalidIDError],
// [*UnknownEventError], [*MalformedEventError], [*UpcastError] and [*UnencodableEventError], for
// errors.As.
//
// The package aggregatetest holds the given-when-then kit that tests decisions without a database.
package aggregate
