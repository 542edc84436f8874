package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

type account struct{ Balance int }

// deposited has about the size of its note.
type deposited struct {
	Amount int
	Note   string
}

func (deposited) EventType() string  { return "account.deposited.v1" }
func (e deposited) Apply(a *account) { a.Balance += e.Amount }

func define(aggregateType string) aggregate.Definition[account] {
	return aggregate.Define[account](aggregateType, deposited{})
}

func events(n, bytes int) aggregate.Events[account] {
	list := make(aggregate.Events[account], n)
	for i := range list {
		list[i] = deposited{Amount: 1, Note: note(bytes)}
	}
	return list
}

// note returns a text that compresses to about half of its size, as JSON with identifiers does.
func note(bytes int) string {
	var text strings.Builder
	for text.Len() < bytes {
		fmt.Fprintf(&text, "member: %016x, role: admin; ", rand.Uint64()) //nolint:gosec // it is no secret
	}
	return text.String()[:bytes]
}

// depositNow records the time as the amount.
func depositNow(account) (aggregate.Events[account], error) {
	return aggregate.Events[account]{deposited{Amount: int(time.Now().UnixNano()), Note: note(eventBytes)}}, nil
}
