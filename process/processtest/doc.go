// Package processtest tests a process manager without a database: given the events of a process,
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
// A failure lists what is missing, unexpected or in another place, the fields that differ, and then
// the whole step. If the input led to no step, it says why: the event has no reaction or belongs to
// no process, the process has not begun or is over, or the reaction had nothing to do or failed.
// For a timeout that cannot fire it says whether it was never set, was cancelled, or has fired.
//
// Each reaction is called three times: twice on the same state and input, and once on the state as
// restored from a snapshot. It fails the test if the steps differ, or if it changes the state that
// it was given. A pure reaction takes times and ids from the state, the event and the input. The
// events and the state must survive the codec, and the commands the marshaler that sends them; see
// [Scenario.Marshaler].
//
// [Scenario.WhenStored] passes events of old types as the journal stores them.
//
// Values are compared with their contents, unexported fields included: by their own method Equal(T)
// bool where they have one, as time.Time does, and field by field otherwise. Nil and empty slices
// and maps count as equal, and so do a nil and an empty Protocol Buffers message.
package processtest
