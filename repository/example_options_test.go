package repository_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// A payment that is delivered twice is booked once.
func ExampleWithCommandID() {
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

	for range 2 {
		account, err := accounts.Execute(ctx, "42", Deposit(100), repository.WithCommandID("payment-7"))
		fmt.Println(account.State.Balance, account.Repeated, err)
	}

	// Output:
	// 100 false <nil>
	// 100 true <nil>
}

// A client sends an Idempotency-Key twice, with another body. Reply with status 422.
func ExampleWithCommandContent() {
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
	deposit := func(key string, body string, amount int) {
		account, err := accounts.Execute(ctx, "42", Deposit(amount), repository.WithCommandID("deposit "+key), repository.WithCommandContent([]byte(body)))
		fmt.Println(account.State.Balance, account.Repeated, errors.As(err, new(*repository.CommandMismatchError)))
	}

	deposit("7", `{"amount": 100}`, 100)
	deposit("7", `{"amount": 100}`, 100)
	deposit("7", `{"amount": 200}`, 200)

	// Output:
	// 100 false false
	// 100 true false
	// 0 false true
}

// An email address belongs to one account. The commit adds a row with the address as its key,
// under the condition that there is none. Either the row and the events of the account are written,
// or neither.
func ExampleWithWrites() {
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
	_, err = j.Client().CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("addresses"),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("address"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("address"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	address := types.TransactWriteItem{Put: &types.Put{
		TableName:           aws.String("addresses"),
		Item:                map[string]types.AttributeValue{"address": &types.AttributeValueMemberS{Value: "ada@example.org"}},
		ConditionExpression: aws.String("attribute_not_exists(address)"),
	}}
	reserve := repository.WithWrites(func(repository.Commit) ([]types.TransactWriteItem, error) {
		return []types.TransactWriteItem{address}, nil
	})
	_, err = accounts.Execute(ctx, "1", Deposit(100), reserve)
	fmt.Println(err)
	_, err = accounts.Execute(ctx, "2", Deposit(100), reserve)
	var refused *journal.WriteRefusedError
	fmt.Println(errors.As(err, &refused) && refused.Code == "ConditionalCheckFailed")
	_, err = accounts.Load(ctx, "2")
	fmt.Println(errors.Is(err, journal.ErrNotFound))

	// Output:
	// <nil>
	// true
	// true
}

func ExampleRepository_LoadAtTime() {
	ctx := context.Background()
	j, err := openJournal(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err := repository.New(j, Accounts, repository.Config{
		// so that LoadAtVersion need not start from the first event
		Redundancy: &repository.Redundancy{Keep: 12},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := accounts.Execute(ctx, "42", Deposit(100)); err != nil {
		fmt.Println(err)
		return
	}

	yesterday, err := accounts.LoadAtTime(ctx, "42", time.Now().Add(-24*time.Hour))
	fmt.Println(yesterday.State.Balance, yesterday.Version, err)
	now, err := accounts.LoadAtTime(ctx, "42", time.Now().Add(time.Second))
	fmt.Println(now.State.Balance, now.Version, err)

	// Output:
	// 0 0 <nil>
	// 100 1 <nil>
}

// With a cache, an aggregate that was used before takes one request instead of two.
func ExampleConfig_cache() {
	ctx := context.Background()
	j, err := openJournal(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err := repository.New(j, Accounts, repository.Config{Cache: 10_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		// The second and the third run do not read.
		if _, err := accounts.Execute(ctx, "42", Deposit(1)); err != nil {
			fmt.Println(err)
			return
		}
	}
	account, err := accounts.Load(ctx, "42") // reads only the version
	fmt.Println(account.State.Balance, err)

	// Output: 3 <nil>
}
