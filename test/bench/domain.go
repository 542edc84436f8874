package main

import (
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
		list[i] = deposited{Amount: 1, Note: strings.Repeat("x", bytes)}
	}
	return list
}

// depositNow records the time as the amount.
func depositNow(account) (aggregate.Events[account], error) {
	return aggregate.Events[account]{deposited{Amount: int(time.Now().UnixNano()), Note: strings.Repeat("x", eventBytes)}}, nil
}
