package journal_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// What is left of a deleted aggregate is a tombstone, so that its numbers are never used again.
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
	receipt, err := eventlog.Of(j).Append(ctx, eventlog.Commit{Aggregate: id, Events: []eventlog.Event{
		{Type: "account.opened.v1", Payload: []byte(`{"name":"Ada"}`)}, {Type: "account.closed.v1"},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}

	fmt.Println(j.Delete(ctx, id, receipt.Version, journal.Removal{}))

	head, err := j.Head(ctx, id)
	fmt.Println(head.Version, head.TruncatedBefore, head.DeletedAt.IsZero(), err)
	_, err = eventlog.Of(j).Append(ctx, eventlog.Commit{Aggregate: id, Expected: 2, Events: []eventlog.Event{{Type: "account.opened.v1"}}})
	fmt.Println(errors.As(err, new(*journal.DeletedError)))

	// Output:
	// <nil>
	// 2 3 false <nil>
	// true
}
