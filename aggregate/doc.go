// Package aggregate defines aggregates: their state, the events that change it, and the decisions
// that lead to new events. It uses no database and no broker, so all of it can be tested in memory.
//
// An aggregate has three parts:
//
//   - its state S, a plain Go type whose zero value is the aggregate before its first event,
//   - its events, plain Go types with a stable name ([Event.EventType]) and an effect on the state
//     ([Event.Apply]),
//   - its decisions ([Decision]), functions that return new events for a state, or an error that
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
//	type Withdrawn struct{ Amount int }
//
//	func (Withdrawn) EventType() string  { return "account.withdrawn.v1" }
//	func (e Withdrawn) Apply(a *Account) { a.Balance -= e.Amount }
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
// Stored events never change. The name of an event type and the fields of its payload are a
// contract with every event that was ever written. A field may be added; it is zero in old events.
// Any other change needs a new name ("account.deposited.v2").
//
// Apply records a fact. It cannot refuse, it must lead to the same state each time, and it must not
// use clocks, random numbers or anything else outside the state and the event. A panic in Apply is
// not recovered.
//
// A decision is a pure function. It may run several times for one command: after a conflict with
// another writer it decides again on the newer state. Pass the ids, times and prices that it needs
// as arguments to the function that makes it. A decision must not change its state. S is passed by
// value, but the caller shares the maps, slices and pointers in it. A repository passes each run of
// a decision a copy, so that such a mistake cannot change a cached state. Package aggregatetest
// finds such a mistake in a test.
//
// # Evolution
//
// When an event type gets a new name, its stored events keep the old one. There are two ways to
// read them. The old Go type can stay in the definition for as long as such events are stored. Or
// an [Upcaster] converts them to current events when they are read, so that Apply methods need to
// know only current events:
//
//	var Accounts = aggregate.Define[Account]("account", Deposited{}, Withdrawn{}).WithUpcasters(
//		aggregate.Upcast("account.deposited.v1", func(old depositedV1) Deposited {
//			return Deposited{Amount: old.Cents, Currency: "EUR"}
//		}),
//		aggregate.Rename("account.taken.v1", "account.withdrawn.v1"),
//		aggregate.Drop("account.viewed.v1"),
//	)
//
// [Upcast] converts one event to one event, [Split] to any number, [UpcastRaw] works on bytes, and
// [Upcaster.WithCodec] reads payloads of another codec. The result of an upcaster may be the input
// of the next. So one upcaster from v1 to v2 and another from v2 to v3 are enough to read v1.
// Upcasters only affect reading. Nothing is written, the events keep their sequence numbers, and
// one stored event is one version, even if it becomes several events or none. Deploy a new event
// type to the readers first: a program that lacks it cannot load an aggregate that has such an
// event.
//
// Do not change the result of an upcaster that is in use. Snapshots and read models that were
// stored with the old result would differ from a replay. If the result was wrong and has to change,
// discard them: increase the schema version of the snapshots, and rebuild the read models.
//
// [Definition.Replay] applies upcasters for a load, [Definition.Upcast] for readers without a
// state.
//
// # Errors
//
// No function of this package panics on input. A [Definition] keeps its faults and
// [Definition.Validate] reports all of them, so a package variable can hold a definition.
// Repositories and other users of a definition validate it when they are made. The errors are
// [*DefinitionError], [*InvalidIDError], [*UnknownEventError], [*MalformedEventError],
// [*UpcastError] and [*UnencodableEventError], for errors.As.
//
// Package aggregatetest tests decisions without a database.
package aggregate
