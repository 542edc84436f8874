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
//
// A failure lists what is missing, what is unexpected, what is in another place, and the fields of
// what differs, and then all of the step. If the input led to no step, it tells why: the event has
// no reaction or belongs to no process, the process has not begun or is over, or the reaction had
// nothing to do or failed. A timeout that cannot fire is reported with what became of it.
//
// Values are compared with their contents, unexported fields included: by their own method Equal(T)
// bool where they have one, as time.Time does, and field by field otherwise. Nil and empty slices
// and maps count as equal, and so do a nil and an empty Protocol Buffers message.
package processtest
