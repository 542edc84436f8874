package bankpb

// Ledger is a state that is a plain struct. Messages of this package are its events.
type Ledger struct {
	Balances map[string]int64
	Closed   bool
}

// EventType makes the message an event.
func (*Withdrawn) EventType() string { return "ledger.withdrawn.v1" }

// Apply changes the ledger as the event says.
func (e *Withdrawn) Apply(l *Ledger) {
	if l.Balances == nil {
		l.Balances = map[string]int64{}
	}
	l.Balances[e.GetCurrency()] -= e.GetAmount()
}

// EventType makes the message an event.
func (*Closed) EventType() string { return "ledger.closed.v1" }

// Apply changes the ledger as the event says.
func (*Closed) Apply(l *Ledger) { l.Closed = true }
