package millrace

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// elsewhere is a store of positions that groups can read, as that of package sqlprojection.
type elsewhere struct{ subscriber.PositionStore }

func (elsewhere) Position(context.Context, subscriber.GroupKey, aggregate.ID) (uint64, bool, error) {
	return 0, false, nil
}

func TestAGroupThatWasRefusedLeavesNoStoreOfPositionsBehind(t *testing.T) {
	t.Parallel()
	app, err := Open(t.Context(), dynamotest.New(t).Client(), Config{Journal: journal.Config{Layout: journal.Packed, Shards: 1}})
	require.NoError(t, err)
	audit := func(maxInFlight int) error {
		return app.Handle(Group{Name: "audit", Topics: []string{"order"}, Subscriber: func(c *subscriber.Config) {
			c.Positions, c.MaxInFlight = elsewhere{}, maxInFlight
		}}, func(*message.Message) error { return nil })
	}

	require.Error(t, audit(-1))
	_, _, err = storedPositions{app}.Position(t.Context(), subscriber.GroupKey{Name: "audit"}, aggregate.ID{Type: "order", Value: "1"})
	require.ErrorIs(t, err, groups.ErrExternalPositions)
	require.NoError(t, audit(1))
	_, _, err = storedPositions{app}.Position(t.Context(), subscriber.GroupKey{Name: "audit"}, aggregate.ID{Type: "order", Value: "1"})
	require.NoError(t, err)
}
