package catalogue_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/catalogue"
	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/journal"
)

type orderChanged struct{ Customer string }

func (*orderChanged) EventType() string { return "OrderChanged" }

func TestForwardedMessagesHaveChannels(t *testing.T) {
	t.Parallel()
	channels := catalogue.Forwarded(
		forward.On("orders", func(context.Context, placed, *journal.Record) ([]publicPlaced, error) { return nil, nil }).WithVersion(2),
		forward.On("orders", func(context.Context, placed, *journal.Record) ([]*orderChanged, error) { return nil, nil }),
		forward.On("bills", func(context.Context, paid, *journal.Record) ([]any, error) { return nil, nil }),
		forward.On("orders", func(context.Context, settled, *journal.Record) ([]*orderChanged, error) { return nil, nil }),
	)
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

func TestAMappingWithoutAFunctionIsRefused(t *testing.T) {
	t.Parallel()
	_, err := catalogue.New(catalogue.Config{Channels: catalogue.Forwarded(forward.On[placed, publicPlaced]("orders", nil))})
	assert.EqualError(t, err, "catalogue: Config.Channels[0].Messages[0].Name is empty: set a name")
}
