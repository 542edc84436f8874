// Package forget stores the data of persons so that it can be forgotten.
package forget

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
)

type (
	// Person is an aggregate with a random id. Other aggregates know the id alone.
	Person struct {
		Name      string
		Forgotten bool
	}
	// Registered is the first event of a person.
	Registered struct{ Name string }
	// Forgotten is the last one.
	Forgotten struct{}

	// Events are those of a person.
	Events = aggregate.Events[Person]
)

func (Registered) EventType() string { return "person.registered.v1" }
func (Forgotten) EventType() string  { return "person.forgotten.v1" }
func (e Registered) Apply(p *Person) { p.Name = e.Name }
func (e Forgotten) Apply(p *Person)  { *p = Person{Forgotten: true} }

// ErrUnknown reports an id that no person has, such as one that is misspelled.
var ErrUnknown = errors.New("no such person")

// Forget ends the data of a person. Other decisions refuse a person who is forgotten.
func Forget(p Person) (Events, error) {
	switch {
	case p.Forgotten:
		return nil, nil
	case p.Name == "":
		return nil, ErrUnknown
	}
	return Events{Forgotten{}}, nil
}

// Register registers a person.
func Register(name string) aggregate.Decision[Person] {
	return func(Person) (Events, error) { return Events{Registered{name}}, nil }
}

// Persons defines the aggregates that are encrypted.
var Persons = aggregate.Define[Person]("person", Registered{}, Forgotten{})

// Service is what an App needs to forget a person.
type Service struct {
	app     *millrace.App
	persons *repository.Repository[Person]
	names   projection.Table
}

// Open opens an App that encrypts. The table of keys is shop-keys.
func Open(ctx context.Context, client *dynamodb.Client, wrapper encrypt.Wrapper) (*Service, error) {
	app, err := millrace.Open(ctx, client, millrace.Config{
		Prefix: "shop-", Journal: journal.Config{Layout: journal.Packed, Shards: 4},
		Personal: millrace.Personal{Types: []string{Persons.Type()}, Wrapper: wrapper},
	})
	if err != nil {
		return nil, err
	}
	s := &Service{app: app, names: projection.Table{Name: "shop-names", PartitionKey: "person"}}
	if s.persons, err = millrace.Repository(app, Persons, repository.Config{}); err != nil {
		return nil, err
	}
	if err := projection.CreateTable(ctx, client, s.names); err != nil {
		return nil, err
	}
	_, err = app.Project(millrace.Group{Name: "names", Topics: []string{"person"}}, s.reactions()...)
	return s, err
}

// reactions keep the names of persons, and delete those of persons who are forgotten.
func (s *Service) reactions() []projection.Reaction {
	return []projection.Reaction{
		projection.On(func(_ context.Context, e Registered, r *journal.Record) ([]projection.Write, error) {
			item := s.names.Key(r.Aggregate.Value)
			item["name"] = &types.AttributeValueMemberS{Value: e.Name}
			return []projection.Write{projection.Put(types.Put{TableName: &s.names.Name, Item: item})}, nil
		}),
		projection.On(func(_ context.Context, _ Forgotten, r *journal.Record) ([]projection.Write, error) {
			return []projection.Write{projection.Delete(types.Delete{TableName: &s.names.Name, Key: s.names.Key(r.Aggregate.Value)})}, nil
		}),
	}
}

// Forget forgets a person: first in the read models, then in the journal. Repeat it after an error.
func (s *Service) Forget(ctx context.Context, id string) error {
	person, err := s.persons.Execute(ctx, id, Forget)
	if errors.Is(err, journal.ErrKeyDestroyed) {
		return nil // the person was forgotten before
	}
	if err != nil {
		return err
	}
	return s.app.Forget(ctx, person.ID, person.Version)
}

// appendLast appends the event that a person is forgotten, and waits until some groups have handled
// it.
func (s *Service) appendLast(ctx context.Context, id string, groups []string) (repository.Aggregate[Person], error) {
	person, err := s.persons.Execute(ctx, id, Forget)
	if err != nil {
		return person, err
	}
	for _, group := range groups {
		if err := s.app.Groups().WaitApplied(ctx, group, person.ID, person.Version); err != nil {
			return person, err
		}
	}
	return person, nil
}

// Delete removes the events and snapshots of a person. Repeat it after an error.
func (s *Service) Delete(ctx context.Context, id string, groups ...string) error {
	person, err := s.appendLast(ctx, id, groups)
	var deleted *journal.DeletedError
	if errors.As(err, &deleted) {
		return s.persons.Delete(ctx, id, deleted.Version, journal.RemoveOptions{})
	}
	if err != nil {
		return err
	}
	return s.persons.Delete(ctx, id, person.Version, journal.RemoveOptions{})
}
