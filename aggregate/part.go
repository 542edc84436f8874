package aggregate

// Part is an aggregate in a decision over several. The decision looks at the State of its parts and
// appends events to some of them:
//
//	func Transfer(from, to *aggregate.Part[Account], amount int) error {
//		if from.State.Balance < amount {
//			return ErrInsufficientFunds
//		}
//		from.Append(Withdrawn{amount})
//		to.Append(Deposited{amount})
//		return nil
//	}
//
// Package repository loads the parts and commits their events in one transaction. Like a [Decision]
// it may run more than once, and must not change the maps, slices and pointers in a State.
type Part[S any] struct {
	ID ID
	// State is that of the aggregate before the decision. Append does not change it.
	State S
	// Version is the sequence number of the last event, 0 if there is none.
	Version uint64
	// Events are those that the decision has appended.
	Events Events[S]
}

// Append adds events, in the order in which they happen.
func (p *Part[S]) Append(events ...Event[S]) { p.Events = append(p.Events, events...) }
