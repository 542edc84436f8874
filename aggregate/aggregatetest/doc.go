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
// To test a decision over several aggregates, make a scenario for each of them; see [Transaction].
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
// A failure shows missing events with a minus sign, and unexpected events with a plus sign. It
// shows the fields of an event that differs:
//
//	When 3 (after 2 events): the events are not as expected (-want +got)
//	  account.Withdrawn{
//	    Account: "a1",
//	-   Amount:  7,
//	+   Amount:  70,
//	  }
//	- account.Closed{}
//
// Package github.com/google/go-cmp/cmp compares the values: by their method Equal if they have one,
// as time.Time does, and otherwise field by field, including unexported fields. Nil and empty
// slices and maps count as equal, and so do a nil and an empty Protocol Buffers message, two
// functions and two channels. The text of a failure may change with the version of that package.
package aggregatetest
