package aggregate

// Participant is one aggregate in a decision over several. The decision reads the State of its
// participants and appends events to some of them:
//
//	func Transfer(from, to *aggregate.Participant[Account], amount int) error {
//		if from.State.Balance < amount {
//			return ErrInsufficientFunds
//		}
//		from.Append(Withdrawn{amount})
//		to.Append(Deposited{amount})
//		return nil
//	}
//
// Package repository loads the participants and commits their events in one transaction. Like a
// [Decision], such a function may run more than once, and must not change the maps, slices and
// pointers in a State.
type Participant[S any] struct {
	ID ID // the aggregate
	// State is the state before the decision. Append does not change it.
	State S
	// Version is the sequence number of the last event before the decision, or 0 if there is none.
	Version uint64
	// Events are the events that the decision has appended.
	Events Events[S]
}

// Append adds events, in the order in which they happen.
func (p *Participant[S]) Append(events ...Event[S]) { p.Events = append(p.Events, events...) }
