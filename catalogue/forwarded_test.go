package catalogue_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/catalogue"
	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/journal"
)

type orderChanged struct{ Customer string }

func (*orderChanged) EventType() string { return "OrderChanged" }

func TestForwardedMessagesHaveChannels(t *testing.T) {
	t.Parallel()
	out, err := forward.New(forward.Config{Publisher: gochannel.NewGoChannel(gochannel.Config{}, nil)},
		forward.On("orders", func(context.Context, placed, *journal.Record) ([]publicPlaced, error) { return nil, nil }).WithVersion(2),
		forward.On("orders", func(context.Context, placed, *journal.Record) ([]*orderChanged, error) { return nil, nil }),
		forward.On("bills", func(context.Context, paid, *journal.Record) ([]any, error) { return nil, nil }),
		forward.On("orders", func(context.Context, settled, *journal.Record) ([]*orderChanged, error) { return nil, nil }),
	)
	require.NoError(t, err)
	channels := catalogue.Forwarded(out.Messages())
	assert.Equal(t, []catalogue.Channel{
		{Name: "orders", Messages: []catalogue.Message{
			{Name: "catalogue_test.publicPlaced", Version: 2, Type: reflect.TypeFor[publicPlaced]()},
			{Name: "OrderChanged", Version: 1, Type: reflect.TypeFor[*orderChanged]()},
		}},
		{Name: "bills", Messages: []catalogue.Message{{Name: "interface {}", Version: 1, Type: reflect.TypeFor[any]()}}},
	}, channels)
	files := filesOf(t, catalogue.Config{Channels: channels})
	assert.Contains(t, files, "channels/orders/OrderChanged.v1.json")
	assert.Contains(t, files["channels/bills.md"], "The value is: any JSON\n")
}
