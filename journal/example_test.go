package journal_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/resolver"
	"github.com/millrace-dev/millrace/repository"
)

// Deposited is an event of an account, whose state is its balance.
type Deposited struct{ Amount int }

func (Deposited) EventType() string    { return "account.deposited.v1" }
func (e Deposited) Apply(balance *int) { *balance += e.Amount }

// deposit is a command of an account.
func deposit(amount int) aggregate.Decision[int] {
	return func(int) (aggregate.Events[int], error) { return aggregate.Events[int]{Deposited{amount}}, nil }
}

// openJournal creates and opens a journal on a client, such as dynamodb.NewFromConfig(...).
func openJournal(client *dynamodb.Client) *journal.Journal {
	config := journal.Config{Layout: journal.Packed, Shards: 4}
	if err := journal.Create(context.Background(), client, config); err != nil {
		log.Fatal(err)
	}
	j, err := journal.Open(context.Background(), client, journal.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return j
}

// repositoryOf returns a repository of accounts.
func repositoryOf(j *journal.Journal) *repository.Repository[int] {
	accounts, err := repository.New(j, aggregate.Define[int]("account", Deposited{}), repository.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return accounts
}

// openAccounts returns a journal in memory with two events of the account alice and one of bob.
func openAccounts() *journal.Journal {
	j := openJournal(dynamotest.Open().Client())
	accounts := repositoryOf(j)
	for _, account := range []string{"alice", "alice", "bob"} {
		if _, err := accounts.Execute(context.Background(), account, deposit(10)); err != nil {
			log.Fatal(err)
		}
	}
	return j
}

// A program creates the tables once, and opens the journal in each process. Repositories write
// events, and the journal reads them.
func Example() {
	ctx := context.Background()
	client := dynamotest.Open().Client() // on AWS: dynamodb.NewFromConfig(...)
	if err := journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 16}); err != nil {
		log.Fatal(err)
	}
	j, err := journal.Open(ctx, client, journal.Config{})
	if err != nil {
		log.Fatal(err)
	}
	accounts, err := repository.New(j, aggregate.Define[int]("account", Deposited{}), repository.Config{})
	if err != nil {
		log.Fatal(err)
	}
	alice, err := accounts.Execute(ctx, "alice", deposit(10))
	if err != nil {
		log.Fatal(err)
	}
	for record, err := range j.AllEvents(ctx, alice.ID) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %d %s %s\n", record.Aggregate, record.Number, record.EventType, record.Payload)
	}
	// Output:
	// account-alice 1 account.deposited.v1 {"Amount":10}
}

// Create the tables before the first process opens the journal. Calling Create again is safe.
func ExampleCreate() {
	client := dynamotest.Open().Client() // on AWS: dynamodb.NewFromConfig(...)
	config := journal.Config{Layout: journal.Packed, Shards: 16}
	for range 2 {
		fmt.Println(journal.Create(context.Background(), client, config))
	}
	// Output:
	// <nil>
	// <nil>
}

// Share the tables of an application of the event-store-adapter family.
func ExampleAdopt() {
	ctx := context.Background()
	client := dynamotest.Open().Client() // on AWS: dynamodb.NewFromConfig(...)
	createTablesOfAnotherProgram(client)

	config := journal.Config{
		Shards: 64, // the number of shards of the other program
		Classic: journal.ClassicOptions{
			Resolver: resolver.JavaHash, // the resolver for a program in Java
		},
	}
	if err := journal.Adopt(ctx, client, config); err != nil {
		log.Fatal(err)
	}
	j, err := journal.Open(ctx, client, config)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(j.Shards(), "shards")
	// Output:
	// 64 shards
}

// createTablesOfAnotherProgram creates the tables like the other program.
func createTablesOfAnotherProgram(client *dynamodb.Client) {
	config := journal.Config{Layout: journal.Classic, Shards: 64, Classic: journal.ClassicOptions{Resolver: resolver.JavaHash}}
	if err := journal.Create(context.Background(), client, config); err != nil {
		log.Fatal(err)
	}
}

// Open reads the number of shards and other settings from the tables.
func ExampleOpen() {
	client := dynamotest.Open().Client() // on AWS: dynamodb.NewFromConfig(...)
	_, err := journal.Open(context.Background(), client, journal.Config{})
	if errors.Is(err, journal.ErrTableMissing) || errors.Is(err, journal.ErrNoDescriptor) {
		fmt.Println("first run the program that calls journal.Create")
	}
	// Output:
	// first run the program that calls journal.Create
}

// Read the version of an aggregate, and its latest snapshot if there is one.
func ExampleJournal_Head() {
	j := openAccounts()
	head, err := j.Head(context.Background(), aggregate.ID{Type: "account", Value: "alice"})
	switch {
	case errors.Is(err, journal.ErrNotFound):
		fmt.Println("there is no such account")
	case err != nil:
		log.Fatal(err)
	case !head.DeletedAt.IsZero():
		fmt.Println("deleted after event", head.Version)
	default:
		fmt.Println(head.Version, "events")
	}
	// Output:
	// 2 events
}

// Read a range of events by their numbers.
func ExampleJournal_Events() {
	j := openAccounts()
	for record, err := range j.Events(context.Background(), aggregate.ID{Type: "account", Value: "alice"}, 1, 2) {
		if err != nil {
			log.Fatal(err) // the events so far are not the whole range
		}
		fmt.Println(record.Number, record.EventType, string(record.Payload))
	}
	// Output:
	// 1 account.deposited.v1 {"Amount":10}
	// 2 account.deposited.v1 {"Amount":10}
}

// List the aggregates of a type, one page after another.
func ExampleJournal_Heads() {
	j := openAccounts()
	query := journal.HeadsQuery{AggregateType: "account", Limit: 1}
	for heads := query.Limit; heads == query.Limit; {
		heads = 0
		for head, err := range j.Heads(context.Background(), query) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(head.Aggregate, "version", head.Version)
			heads++
			query.After = head.Aggregate
		}
	}
	// Unordered output:
	// account-alice version 2
	// account-bob version 1
}

// Read the events of a type that were written since a time.
func ExampleJournal_Tail() {
	j := openAccounts()
	events := map[aggregate.ID]int{}
	for record, err := range j.Tail(context.Background(), "account", time.Now().Add(-time.Hour)) {
		if err != nil {
			log.Fatal(err)
		}
		events[record.Aggregate]++
	}
	fmt.Println(events)
	// Output:
	// map[account-alice:2 account-bob:1]
}

// Show the newest events of a type.
func ExampleJournal_Newest() {
	j := openAccounts()
	limit := 3
	for record, err := range j.Newest(context.Background(), "account", limit) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(record.Aggregate, record.Number)
		if limit--; limit == 0 {
			break
		}
	}
	// Unordered output:
	// account-alice 1
	// account-alice 2
	// account-bob 1
}

// The context of a command ends during the request, so the outcome is unknown. Resolve reads
// whether the events were written.
func ExampleJournal_Resolve() {
	db := dynamotest.Open()
	j := openJournal(db.Client())
	ctx, cancel := context.WithCancel(context.Background())
	db.Inject(dynamotest.PauseReply(func(context.Context) { cancel() }), dynamotest.On("PutItem"))

	_, err := repositoryOf(j).Execute(ctx, "alice", deposit(10))
	var unknown *journal.OutcomeUnknownError
	if errors.As(err, &unknown) {
		written, err := j.Resolve(context.Background(), unknown)
		fmt.Println(written, err)
	}
	// Output:
	// true <nil>
}

// Measure the capacity that a request consumes.
func ExampleCountUnits() {
	j := openAccounts()
	ctx, units := journal.CountUnits(context.Background())
	if _, err := j.Version(ctx, aggregate.ID{Type: "account", Value: "alice"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(units.Requests(), "request,", units.Read(), "read unit")
	// Output:
	// 1 request, 1 read unit
}
