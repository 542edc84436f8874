// Package views has two read models: the seats of a show, and the bookings of a customer.
package views

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/examples/booking/show"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
)

// Views has the tables of the read models and their queries.
type Views struct {
	client          *dynamodb.Client
	seats, bookings projection.Table
}

// New returns the views whose table names begin with prefix.
func New(client *dynamodb.Client, prefix string) *Views {
	return &Views{
		client:   client,
		seats:    projection.Table{Name: prefix + "seats", PartitionKey: "show"},
		bookings: projection.Table{Name: prefix + "bookings", PartitionKey: "customer", SortKey: "booking"},
	}
}

// Tables returns the tables of the views.
func (v *Views) Tables() []projection.Table { return []projection.Table{v.seats, v.bookings} }

type (
	record = *journal.Record
	writes = []projection.Write
	values = map[string]types.AttributeValue
)

// Seats returns the reactions of the view of seats: one item for each show.
func (v *Views) Seats() []projection.Reaction {
	schedule := func(seats []string, r record) writes {
		free := values{}
		for _, seat := range seats {
			free[seat] = projection.Text("free")
		}
		item := v.seats.Key(r.Aggregate.Value)
		item["seats"] = &types.AttributeValueMemberM{Value: free}
		return writes{projection.Put(types.Put{TableName: &v.seats.Name, Item: item})}
	}
	set := func(seats []string, status string, r record) writes {
		names, sets := map[string]string{}, make([]string, len(seats))
		for i, seat := range seats {
			names[fmt.Sprintf("#s%d", i)] = seat
			sets[i] = fmt.Sprintf("seats.#s%d = :status", i)
		}
		return writes{projection.Update(types.Update{
			TableName: &v.seats.Name, Key: v.seats.Key(r.Aggregate.Value), UpdateExpression: aws.String("SET " + strings.Join(sets, ", ")),
			ExpressionAttributeNames: names, ExpressionAttributeValues: values{":status": projection.Text(status)},
		})}
	}
	return []projection.Reaction{
		projection.On(func(_ context.Context, e show.Scheduled, r record) (writes, error) { return schedule(e.Seats, r), nil }),
		projection.On(func(_ context.Context, e show.Held, r record) (writes, error) { return set(e.Seats, "held", r), nil }),
		projection.On(func(_ context.Context, e show.Booked, r record) (writes, error) {
			return set(e.Seats, "booked", r), nil
		}),
		projection.On(func(_ context.Context, e show.Released, r record) (writes, error) {
			return set(e.Seats, "free", r), nil
		}),
	}
}

// Bookings returns the reactions of the view of bookings.
func (v *Views) Bookings() []projection.Reaction {
	put := func(customer, booking, status string, seats []string, r record) writes {
		item := v.bookings.Key(customer, booking)
		item["show"], item["status"], item["seats"] = projection.Text(r.Aggregate.Value), projection.Text(status), projection.Text(strings.Join(seats, " "))
		return writes{projection.Put(types.Put{TableName: &v.bookings.Name, Item: item})}
	}
	return []projection.Reaction{
		projection.On(func(_ context.Context, e show.Held, r record) (writes, error) {
			return put(e.Customer, e.Booking, "held", e.Seats, r), nil
		}),
		projection.On(func(_ context.Context, e show.Booked, r record) (writes, error) {
			return put(e.Customer, e.Booking, "booked", e.Seats, r), nil
		}),
		projection.On(func(_ context.Context, e show.Released, r record) (writes, error) {
			return put(e.Customer, e.Booking, "released", e.Seats, r), nil
		}),
	}
}

// SeatsOf returns the status of each seat of a show: free, held or booked. A show that does not
// exist has no seats.
func (v *Views) SeatsOf(ctx context.Context, id string) (map[string]string, error) {
	decode := func(row projection.Row) (map[string]string, error) {
		all := map[string]string{}
		if seats, ok := row["seats"].(*types.AttributeValueMemberM); ok {
			for seat := range seats.Value {
				all[seat] = projection.Row(seats.Value).Text(seat)
			}
		}
		return all, nil
	}
	seats, found, err := projection.Reader[map[string]string]{Client: v.client, Table: v.seats, Decode: decode}.Get(ctx, id)
	if !found && err == nil {
		seats = map[string]string{}
	}
	return seats, err
}

// Booking is a booking as a customer sees it.
type Booking struct {
	Booking string `json:"booking"`
	Show    string `json:"show"`
	Seats   string `json:"seats"`
	Status  string `json:"status"`
}

// BookingsOf returns the bookings of a customer.
func (v *Views) BookingsOf(ctx context.Context, customer string) ([]Booking, error) {
	reader := projection.Reader[Booking]{Client: v.client, Table: v.bookings, Decode: func(row projection.Row) (Booking, error) {
		return Booking{row.Text("booking"), row.Text("show"), row.Text("seats"), row.Text("status")}, nil
	}}
	all := []Booking{}
	for booking, err := range reader.All(ctx, projection.Query{Partition: customer, Consistent: true}) {
		if err != nil {
			return nil, err
		}
		all = append(all, booking)
	}
	return all, nil
}
