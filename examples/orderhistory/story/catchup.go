package story

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/examples/orderhistory/history"
)

// catchUp waits until the history has been told every event: until each order in its index, which in DynamoDB
// follows the table, has the version of the order itself.
func catchUp(ctx context.Context, dao *history.DAO, want truth) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for id, o := range want {
		for {
			got, err := versionInIndex(ctx, dao, o)
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("wait for the history: %w", err)
			}
			if got >= o.Version {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%w: it has got to event %d of %d of %s in %s", ErrWrong, got, o.Version, id, patience)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}

// versionInIndex is 0 for an order that is not there yet.
func versionInIndex(ctx context.Context, dao *history.DAO, o history.Order) (uint64, error) {
	page, err := dao.FindOrderHistory(ctx, o.ConsumerID, history.Filter{
		Since: o.CreationTime, Until: o.CreationTime.Add(time.Millisecond), PageSize: history.MaxPageSize,
	})
	for _, got := range page.Orders {
		if got.OrderID == o.OrderID {
			return got.Version, nil
		}
	}
	return 0, err
}
