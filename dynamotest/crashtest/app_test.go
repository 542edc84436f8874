package crashtest_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest/crashtest"
)

// The crash comes at another request of the same work each time: while the instance joins its
// group, while it commits, and while it handles events.
func TestAnAppLosesNothingWhereverItCrashes(t *testing.T) {
	t.Parallel()
	for after := 1; after < 300; after += 61 {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			mails := &mailbox{sent: map[string]bool{}, fault: func(string, float64) error { return nil }}
			f := crashtest.New(t, uint64(after), func(ctx context.Context, client *dynamodb.Client, l net.Listener) (*shop, error) {
				return openShop(ctx, client, l, mails)
			})
			first := f.Start()
			first.CrashAfter(after)
			var placed []string
			for n := 0; ; n++ {
				id := fmt.Sprint(n)
				_, err := first.Service.orders.Execute(t.Context(), id, place)
				if err != nil {
					break // it has crashed; the order may be stored
				}
				placed = append(placed, id)
			}
			f.Start()
			f.Eventually(func(ctx context.Context, s *shop) error {
				for _, id := range placed {
					v, err := s.Journal().Version(ctx, aggregate.ID{Type: "order", Value: id})
					if err == nil && v != 1 {
						err = fmt.Errorf("order %s has version %d", id, v)
					}
					if err != nil {
						return err
					}
				}
				if n := mails.count(); n < len(placed) {
					return fmt.Errorf("%d mails of %d orders", n, len(placed))
				}
				return nil
			})
			require.GreaterOrEqual(t, mails.count(), len(placed))
		})
	}
}
