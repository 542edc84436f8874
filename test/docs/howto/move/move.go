// Package move opens an App on the tables that a journal was moved to.
package move

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// Open opens an App on the new tables. Groups begin with the events since the writers stopped.
// Remove Subscriber before you begin a generation of a read model, which needs all events.
// Tables of read models and process managers keep their names.
func Open(ctx context.Context, client *dynamodb.Client, stopped time.Time) (*millrace.App, error) {
	return millrace.Open(ctx, client, millrace.Config{
		Prefix: "shop-",
		Journal: journal.Config{Tables: journal.Tables{
			Journal: "shop-journal2", Snapshot: "shop-snapshot2", Checkpoint: "shop-checkpoint2",
		}},
		ExistingTables: true,
		Subscriber:     func(_ string, c *subscriber.Config) { c.Start = subscriber.At(stopped) },
	})
}
