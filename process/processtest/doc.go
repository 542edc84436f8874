// Package processtest tests a process manager without a database: given what the process remembers,
// when an event or a timeout comes, then these events, commands and timeouts follow.
//
//	processtest.Given(t, definition, Begun{Total: 5}).
//		When(CreditReserved{Order: "o1"}).
//		ThenProcess("o1").
//		Then(Reserved{}, Ended{"approved"}).
//		ThenCommands(ApproveOrder{Order: "o1"}).
//		ThenCancelled("credit").
//		ThenOver()
package processtest
