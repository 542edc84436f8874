// Package processtest tests a process manager without a database. A scenario says which events a
// process has, passes it an event or a timeout, and compares the resulting events, commands and
// timeouts:
//
//	processtest.Given(t, definition, Begun{Total: 5}).
//		When(CreditReserved{Order: "o1"}).
//		ThenProcess("o1").
//		Then(Reserved{}, Ended{"approved"}).
//		ThenCommands(ApproveOrder{Order: "o1"}).
//		ThenCancelled("credit").
//		ThenEnded()
//
// A failure shows missing values with a minus sign, unexpected values with a plus sign, the fields
// of values that differ, and then the whole step. If the input led to no step, it says why: the
// event has no reaction or belongs to no process, the process has not begun or has ended, or the
// reaction had nothing to do or failed. For a timeout that cannot fire it says whether it was never
// set, was cancelled, or has fired.
//
// Each reaction is called three times: twice on the same state and input, and once on the state
// after a snapshot was stored and read. The test fails if the steps differ, or if the reaction
// changes the state that it was passed. A pure reaction takes times and ids from the state, the
// event and the input. The test also fails if events or the state change when the codec encodes and
// decodes them, or commands when the marshaler does; see [Scenario.Marshaler].
//
// [Scenario.WhenStored] passes events of old types as the journal stores them.
//
// Values are compared as package aggregatetest does.
package processtest
