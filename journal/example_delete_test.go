package journal_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Delete an aggregate. Its tombstone stays, so that its numbers are never used again.
func ExampleJournal_Delete() {
	ctx, j := context.Background(), openAccounts()
	id := aggregate.ID{Type: "account", Value: "alice"}
	if err := j.Delete(ctx, id, 2, journal.RemoveOptions{}); err != nil {
		log.Fatal(err)
	}

	head, err := j.Head(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("version", head.Version, "deleted", !head.DeletedAt.IsZero())
	_, err = repositoryOf(j).Execute(ctx, "alice", deposit(10))
	fmt.Println("refused", errors.As(err, new(*journal.DeletedError)))
	// Output:
	// version 2 deleted true
	// refused true
}
