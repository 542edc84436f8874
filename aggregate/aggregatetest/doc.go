// Package aggregatetest tests the decisions of an aggregate without a database: given some events,
// when a decision is made, then these events follow, or this error.
//
//	func TestWithdrawing(t *testing.T) {
//		aggregatetest.Given(t, Accounts, Deposited{100}).
//			When(Withdraw(30)).Then(Withdrawn{30}).
//			When(Withdraw(71)).ThenError(ErrInsufficientFunds).
//			When(Withdraw(70)).Then(Withdrawn{70}).
//			ThenState(Account{Balance: 0})
//	}
//
// Every When decides on the state after all events so far. A refusal must be expected by
// [Scenario.ThenError] or [Scenario.ThenErrorFunc]; otherwise it fails the test.
//
// A decision over several aggregates has a scenario for each; see [Parts].
//
// In addition to what the test expects, a scenario checks what a stored aggregate relies on. It
// fails if
//
//   - the definition is not valid,
//   - an event, given or produced, changes when the codec encodes and decodes it,
//   - the state changes when the codec encodes and decodes it, so that a snapshot would lose something,
//   - an event that is given as it is stored, by [Scenario.Stored], cannot be read,
//   - applying the same events twice gives two different states,
//   - a decision gives different results when it is made twice on the same state, because it looks
//     at a clock or draws a random number; such values are arguments of the function that makes the
//     decision,
//   - a decision changes the state it was given, through a map, a slice or a pointer in it.
//
// A failure lists the events that are missing, the unexpected ones, those in another place, and the
// fields of those that differ:
//
//	When 3 (after 2 events): the events are not as expected
//	- event 1, account.Withdrawn, differs:
//	    Amount: expected 7, got 70
//	got 1 event
//	  1. account.Withdrawn{Amount: 70}
//
// Values are compared with their contents, unexported fields included: by their own method Equal(T)
// bool where they have one, as time.Time does, and field by field otherwise. Nil and empty slices
// and maps count as equal, and so do a nil and an empty Protocol Buffers message.
package aggregatetest
