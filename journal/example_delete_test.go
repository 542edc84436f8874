package journal_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
)

// A tombstone stays of a deleted aggregate, so that its numbers are never used again.
func ExampleJournal_Delete() {
	ctx := context.Background()
	client := dynamotest.Open().Client() // any *dynamodb.Client
	if err := journal.Create(ctx, client, journal.Config{Shards: 16}); err != nil {
		fmt.Println(err)
		return
	}
	j, err := journal.Open(ctx, client, journal.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	id := aggregate.ID{Type: "account", Value: "42"}
	if err := publish(j, "42", "account.opened.v1", "account.closed.v1"); err != nil {
		fmt.Println(err)
		return
	}

	fmt.Println(j.Delete(ctx, id, 2, journal.Removal{}))

	head, err := j.Head(ctx, id)
	fmt.Println(head.Version, head.TruncatedBefore, head.DeletedAt.IsZero(), err)
	err = publish(j, "42", "account.opened.v1")
	fmt.Println(errors.As(err, new(*journal.DeletedError)))

	// Output:
	// <nil>
	// 2 3 false <nil>
	// true
}
