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

// CreateTables creates the tables that are missing.
func (v *Views) CreateTables(ctx context.Context) error {
	for _, table := range []projection.Table{v.seats, v.bookings} {
		if err := projection.CreateTable(ctx, v.client, table); err != nil {
			return err
		}
	}
	return nil
}

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
			free[seat] = text("free")
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
			ExpressionAttributeNames: names, ExpressionAttributeValues: values{":status": text(status)},
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
		item["show"], item["status"], item["seats"] = text(r.Aggregate.Value), text(status), text(strings.Join(seats, " "))
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
	found, err := v.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &v.seats.Name, Key: v.seats.Key(id), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	if seats, ok := found.Item["seats"].(*types.AttributeValueMemberM); ok {
		for seat := range seats.Value {
			all[seat] = of(seats.Value, seat)
		}
	}
	return all, nil
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
	pages := dynamodb.NewQueryPaginator(v.client, &dynamodb.QueryInput{
		TableName: &v.bookings.Name, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("#k = :k"),
		ExpressionAttributeNames:  map[string]string{"#k": v.bookings.PartitionKey},
		ExpressionAttributeValues: values{":k": text(customer)},
	})
	all := []Booking{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			all = append(all, Booking{of(item, "booking"), of(item, "show"), of(item, "seats"), of(item, "status")})
		}
	}
	return all, nil
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func of(item values, name string) string {
	s, _ := item[name].(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}
