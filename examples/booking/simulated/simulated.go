// Package simulated has a bank and a mail service in memory. Both accept idempotency keys, and fail
// when the caller wants it.
package simulated

import (
	"context"
	"sync"
)

// Faults says which calls fail. The zero value fails none.
type Faults struct {
	// Before is called before a call takes effect. The call returns its error.
	Before func(ctx context.Context) error
	// After is called after the call has taken effect. If it returns an error, the call returns it,
	// as if the reply was lost.
	After func(ctx context.Context) error
}

func (f Faults) around(ctx context.Context, call func()) error {
	if f.Before != nil {
		if err := f.Before(ctx); err != nil {
			return err
		}
	}
	call()
	if f.After != nil {
		return f.After(ctx)
	}
	return nil
}

// Bank is an effects.Bank.
type Bank struct {
	Faults Faults
	// Limit is the largest amount that is accepted. Default: 0, no limit.
	Limit int

	mu       sync.Mutex
	charged  map[string]int
	declined map[string]string
	refunded map[string]bool
	calls    int
}

// Charge charges a customer, once for each key.
func (b *Bank) Charge(ctx context.Context, key string, amount int) (declined string, err error) {
	err = b.Faults.around(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.calls++
		if b.charged == nil {
			b.charged, b.declined, b.refunded = map[string]int{}, map[string]string{}, map[string]bool{}
		}
		if _, known := b.charged[key]; known {
			return
		}
		if b.Limit > 0 && amount > b.Limit {
			b.declined[key] = "the amount is over the limit of the card"
		} else {
			b.charged[key] = amount
		}
		declined = b.declined[key]
	})
	return declined, err
}

// Refund returns the money of a charge, once for each key.
func (b *Bank) Refund(ctx context.Context, key string) error {
	return b.Faults.around(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.calls++
		b.refunded[key] = true
	})
}

// Balance returns the amount that was charged for a key and not refunded.
func (b *Bank) Balance(key string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refunded[key] {
		return 0
	}
	return b.charged[key]
}

// Charges returns how many charges there were, and how many calls.
func (b *Bank) Charges() (charges, calls int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.charged), b.calls
}

// Mail is a mail that was sent.
type Mail struct{ Key, To, Text string }

// Post is an effects.Post.
type Post struct {
	Faults Faults
	// Sent is called for each mail that is sent. Default: none.
	Sent func(Mail)

	mu    sync.Mutex
	keys  map[string]bool
	mails []Mail
	calls int
}

// Send sends a mail, once for each key.
func (p *Post) Send(ctx context.Context, key, to, text string) error {
	return p.Faults.around(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.calls++
		if p.keys == nil {
			p.keys = map[string]bool{}
		}
		if p.keys[key] {
			return
		}
		p.keys[key] = true
		p.mails = append(p.mails, Mail{key, to, text})
		if p.Sent != nil {
			p.Sent(Mail{key, to, text})
		}
	})
}

// Mails returns the mails that were sent, and how many calls there were.
func (p *Post) Mails() (mails []Mail, calls int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Mail(nil), p.mails...), p.calls
}
