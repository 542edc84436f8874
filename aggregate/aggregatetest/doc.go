// Package aggregatetest tests the decisions of an aggregate without a database. A scenario says
// which events have happened, makes decisions, and compares the events or the error that each
// decision returns:
//
//	func TestWithdrawing(t *testing.T) {
//		aggregatetest.Given(t, Accounts, Deposited{100}).
//			When(Withdraw(30)).Then(Withdrawn{30}).
//			When(Withdraw(71)).ThenError(ErrInsufficientFunds).
//			When(Withdraw(70)).Then(Withdrawn{70}).
//			ThenState(Account{Balance: 0})
//	}
//
// Every When decides on the state after all events so far. A refusal fails the test, unless
// [Scenario.ThenError] or [Scenario.ThenErrorFunc] expects it.
//
// To test a decision over several aggregates, make a scenario for each of them; see [Parts].
//
// In addition to the expectations of the test, a scenario checks the properties that a stored
// aggregate relies on. It fails in each of these cases:
//
//   - The definition is not valid.
//   - An event, given or produced, changes when the codec encodes and decodes it.
//   - The state changes when the codec encodes and decodes it. A snapshot would lose something.
//   - A stored event, passed to [Scenario.Stored], cannot be read.
//   - Applying the same events twice leads to two different states.
//   - A decision returns different results when it is made twice on the same state, because it
//     reads a clock or draws a random number. Pass such values as arguments to the function that
//     makes the decision.
//   - A decision changes the state that it was passed, through a map, a slice or a pointer in it.
//
// A failure lists the events that are missing, unexpected or in another place. For an event that
// differs it lists the fields:
//
//	When 3 (after 2 events): the events are not as expected
//	- event 1, account.Withdrawn, differs:
//	    Amount: expected 7, got 70
//	got 1 event
//	  1. account.Withdrawn{Amount: 70}
//
// Values are compared by their method Equal(T) bool if they have one, as time.Time does, and
// otherwise field by field, including unexported fields. Nil and empty slices and maps count as
// equal, and so do a nil and an empty Protocol Buffers message.
package aggregatetest
