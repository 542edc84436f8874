package millrace

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
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
	assert.Same(t, app.groups, app.groupsOf("audit"))
	require.NoError(t, audit(1))
	assert.NotSame(t, app.groups, app.groupsOf("audit"))
}
