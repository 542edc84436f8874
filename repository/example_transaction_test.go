package repository_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/repository"
)

// Transfer decides on a payment. It needs no database: see package aggregatetest for its test.
func Transfer(from, to *aggregate.Participant[Account], amount int) error {
	if from.State.Balance < amount {
		return ErrInsufficientFunds
	}
	from.Append(Withdrawn{amount})
	to.Append(Deposited{amount})
	return nil
}

func ExampleTransaction_Execute() {
	ctx := context.Background()
	j, err := openJournal(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err := repository.New(j, Accounts, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := accounts.Execute(ctx, "alice", Deposit(100)); err != nil {
		fmt.Println(err)
		return
	}

	pay := func(amount int, commandID string) {
		var tx repository.Transaction
		from, to := accounts.AddTo(&tx, "alice"), accounts.AddTo(&tx, "bob")
		err := tx.Execute(ctx, func() error {
			return Transfer(&from.Participant, &to.Participant, amount)
		}, repository.WithCommandID(commandID))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(from.Aggregate().State.Balance, to.Aggregate().State.Balance, from.Aggregate().Repeated)
	}
	pay(30, "payment 1")
	pay(30, "payment 1") // the same message again
	pay(71, "payment 2")

	// Output:
	// 70 30 false
	// 70 30 true
	// insufficient funds
}

// Seat and Customer are the aggregates of a theatre.
type Seat struct{ HeldBy string }

type SeatReserved struct{ Customer string }

func (SeatReserved) EventType() string { return "seat.reserved.v1" }
func (e SeatReserved) Apply(s *Seat)   { s.HeldBy = e.Customer }

type Customer struct{ Seats int }

type SeatGranted struct{ Seat string }

func (SeatGranted) EventType() string   { return "customer.seat_granted.v1" }
func (e SeatGranted) Apply(c *Customer) { c.Seats++ }

// Show says how many seats a customer may have. Reservations read it and do not change it, so they
// do not wait for each other.
type Show struct{ SeatsEach int }

type ShowOpened struct{ SeatsEach int }

func (ShowOpened) EventType() string { return "show.opened.v1" }
func (e ShowOpened) Apply(s *Show)   { s.SeatsEach = e.SeatsEach }

var (
	Seats     = aggregate.Define[Seat]("seat", SeatReserved{})
	Customers = aggregate.Define[Customer]("customer", SeatGranted{})
	Shows     = aggregate.Define[Show]("show", ShowOpened{})

	ErrTaken = errors.New("taken")
	ErrQuota = errors.New("the customer has all seats that one may have")
)

// Reserve decides on a number of seats for a customer.
func Reserve(show *aggregate.Participant[Show], customer *aggregate.Participant[Customer], seats ...*aggregate.Participant[Seat]) error {
	if customer.State.Seats+len(seats) > show.State.SeatsEach {
		return ErrQuota
	}
	for _, seat := range seats {
		if seat.State.HeldBy != "" {
			return fmt.Errorf("%s: %w", seat.ID.Value, ErrTaken)
		}
		seat.Append(SeatReserved{customer.ID.Value})
		customer.Append(SeatGranted{seat.ID.Value})
	}
	return nil
}

// The number of participants may differ from call to call.
func ExampleTransaction_Execute_seats() {
	ctx := context.Background()
	j, err := openJournal(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	seats, err := repository.New(j, Seats, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	customers, err := repository.New(j, Customers, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	shows, err := repository.New(j, Shows, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := shows.Execute(ctx, "hamlet", always[Show](ShowOpened{SeatsEach: 3})); err != nil {
		fmt.Println(err)
		return
	}

	reserve := func(customerID string, seatIDs ...string) error {
		var tx repository.Transaction
		show, customer := shows.AddTo(&tx, "hamlet"), customers.AddTo(&tx, customerID)
		var wanted []*aggregate.Participant[Seat]
		for _, id := range seatIDs {
			wanted = append(wanted, &seats.AddTo(&tx, "hamlet/"+id).Participant)
		}
		return tx.Execute(ctx, func() error { return Reserve(&show.Participant, &customer.Participant, wanted...) })
	}
	fmt.Println(reserve("ann", "A1", "A2"))
	fmt.Println(reserve("ben", "A3", "A2")) // neither of the seats
	fmt.Println(reserve("ann", "A3", "A4"))
	fmt.Println(reserve("ben", "A3"))

	// Output:
	// <nil>
	// hamlet/A2: taken
	// the customer has all seats that one may have
	// <nil>
}

// User has an email address. An Address belongs to one user, so it makes the email address
// unique.
type User struct{ Email string }

type EmailChanged struct{ Email string }

func (EmailChanged) EventType() string { return "user.email_changed.v1" }
func (e EmailChanged) Apply(u *User)   { u.Email = e.Email }

type Address struct{ User string }

type AddressTaken struct{ User string }

func (AddressTaken) EventType() string  { return "address.taken.v1" }
func (e AddressTaken) Apply(a *Address) { a.User = e.User }

type AddressFreed struct{}

func (AddressFreed) EventType() string { return "address.freed.v1" }
func (AddressFreed) Apply(a *Address)  { a.User = "" }

var (
	Users     = aggregate.Define[User]("user", EmailChanged{})
	Addresses = aggregate.Define[Address]("address", AddressTaken{}, AddressFreed{})
)

// An aggregate for each address makes addresses unique. The current address of the user has to be
// among the participants, so it is read first. If it changes in between, WithExpectedVersion fails
// the call.
func ExampleTransaction_Execute_unique() {
	ctx := context.Background()
	j, err := openJournal(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	users, err := repository.New(j, Users, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	addresses, err := repository.New(j, Addresses, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}

	change := func(userID, email string) error {
		now, err := users.Execute(ctx, userID, always[User]())
		if err != nil {
			return err
		}
		var tx repository.Transaction
		user := users.AddTo(&tx, userID, repository.WithExpectedVersion(now.Version))
		wanted := addresses.AddTo(&tx, email)
		var old *repository.Participant[Address]
		if now.State.Email != "" && now.State.Email != email {
			old = addresses.AddTo(&tx, now.State.Email)
		}
		return tx.Execute(ctx, func() error {
			switch wanted.State.User {
			case userID:
				return nil
			case "":
			default:
				return fmt.Errorf("%s: %w", email, ErrTaken)
			}
			user.Append(EmailChanged{email})
			wanted.Append(AddressTaken{userID})
			if old != nil {
				old.Append(AddressFreed{})
			}
			return nil
		})
	}
	fmt.Println(change("ann", "ann@example.com"))
	fmt.Println(change("ben", "ann@example.com"))
	fmt.Println(change("ann", "a@example.com"))
	fmt.Println(change("ben", "ann@example.com"))

	// Output:
	// <nil>
	// ann@example.com: taken
	// <nil>
	// <nil>
}
