package millrace_test

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// A test commits an event, and waits until the App has handled it.
func ExampleApp_Settle() {
	ctx := context.Background()
	client := dynamotest.Open().Client()
	app, err := millrace.Open(ctx, client, millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	repo, err := millrace.Repository(app, orders, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = app.HandleEvents(millrace.Group{Name: "labels", Topics: []string{"order"}},
		cqrs.NewGroupEventHandler(func(_ context.Context, e *placed) error {
			fmt.Println("label for", e.Item)
			return nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	stop, err := app.Start(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := repo.Execute(ctx, "1", place("tea")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("settled:", app.Settle(ctx))
	fmt.Println("stopped:", stop())

	// Output:
	// label for tea
	// settled: <nil>
	// stopped: <nil>
}
