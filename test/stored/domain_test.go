package stored

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
)

// An account has a balance. Its payloads are compressed if they are long.
type (
	Account struct {
		Owner   string `json:"owner"`
		Balance int    `json:"balance"`
		Note    string `json:"note"`
	}
	Opened    struct{ Owner string }
	Deposited struct{ Amount int }
	Noted     struct{ Text string }
)

func (Opened) EventType() string     { return "account.opened.v1" }
func (Deposited) EventType() string  { return "account.deposited.v1" }
func (Noted) EventType() string      { return "account.noted.v1" }
func (e Opened) Apply(a *Account)    { a.Owner = e.Owner }
func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }
func (e Noted) Apply(a *Account)     { a.Note = e.Text }

// A customer is a person. Its payloads are encrypted.
type (
	Customer struct {
		Name    string `json:"name"`
		Address string `json:"address"`
	}
	Registered struct{ Name string }
	Moved      struct{ Address string }
)

func (Registered) EventType() string   { return "customer.registered.v1" }
func (Moved) EventType() string        { return "customer.moved.v1" }
func (e Registered) Apply(c *Customer) { c.Name = e.Name }
func (e Moved) Apply(c *Customer)      { c.Address = e.Address }

// A reminder is a process. It asks the owner of a new account for a signature, and reminds the
// owner an hour later.
type (
	Reminder struct {
		Asked, Reminded bool
	}
	Asked    struct{}
	Reminded struct{}

	AskForSignature struct{ Account string }
	Remind          struct{ Account string }
)

func (Asked) EventType() string           { return "reminder.asked.v1" }
func (Reminded) EventType() string        { return "reminder.reminded.v1" }
func (Asked) Apply(r *Reminder)           { r.Asked = true }
func (Reminded) Apply(r *Reminder)        { r.Reminded = true }
func (AskForSignature) EventType() string { return "ask-for-signature" }
func (Remind) EventType() string          { return "remind" }

const (
	signature = "signature" // the timeout of a reminder

	waiting = "waiting" // the account whose reminder waits for its timeout
	unsent  = "unsent"  // the account whose reminder has a command that is not sent
)

var (
	accounts  = aggregate.Define[Account]("account", Opened{}, Deposited{}, Noted{})
	customers = aggregate.Define[Customer]("customer", Registered{}, Moved{})
	reminders = process.Define(aggregate.Define[Reminder]("reminder", Asked{}, Reminded{}),
		process.On(func(_ Opened, in process.Input) string {
			if in.Source.Value == waiting || in.Source.Value == unsent {
				return in.Source.Value
			}
			return ""
		}, func(_ Reminder, _ Opened, in process.Input) (process.Step[Reminder], error) {
			return process.Record(Asked{}).Send(AskForSignature{in.Process}).SetTimeout(signature, time.Hour), nil
		}).Starts(),
		process.OnTimeout(signature, func(_ Reminder, in process.Input) (process.Step[Reminder], error) {
			return process.Record(Reminded{}).Send(Remind{in.Process}), nil
		}),
	).EndsWhen(func(r Reminder) bool { return r.Reminded })
)
