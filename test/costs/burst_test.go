package costs

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// bursts returns the table of the cost of bursts of a group on a topic with 4 shards.
func bursts(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(header([]string{"burst"}, "read units", "write units"))
	columns := map[journal.Layout][]bill{}
	for _, layout := range layouts {
		columns[layout] = burstBills(t, layout)
	}
	for i, name := range []string{
		"a hint of an event that is handled", "a hint of one event", "hints of 10 events of 10 aggregates",
		"a sweep that finds nothing", "a sweep that finds one event",
	} {
		fmt.Fprintf(&b, "| %s |", name)
		for _, layout := range layouts {
			fmt.Fprintf(&b, " %g | %g |", columns[layout][i].read, columns[layout][i].write)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func burstBills(t *testing.T, layout journal.Layout) (bills []bill) {
	t.Helper()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		w := world{t: t, db: db, j: testjournal.New(t, db.Client(), journal.Config{Layout: layout, Shards: 4})}
		write := func(value string) subscriber.Hint {
			of := aggregate.ID{Type: group.Topic, Value: value}
			testjournal.Append(t, w.j, storage.Commit{Aggregate: of, Events: []storage.Event{{Type: "written"}}})
			return subscriber.Hint{Aggregate: of, Version: 1}
		}
		burst := func(hints ...subscriber.Hint) bill {
			recording := db.Record()
			defer recording.Stop()
			b := w.bill(func(ctx context.Context) error {
				sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: w.j, ConsumerGroup: group.Group}, nil)
				require.NoError(t, err)
				router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
				require.NoError(t, err)
				router.AddConsumerHandler("handler", group.Topic, sub, func(*message.Message) error { return nil })
				_, err = subscriber.Burst{Hints: hints}.Run(ctx, router)
				return err
			})
			// From time to time a journal reads its descriptor, whatever it does. In the classic
			// layout this request may also read an event.
			for _, call := range recording.Calls("GetItem") {
				if layout == journal.Packed && call.Tables[0] == "journal" {
					b.read -= call.ReadUnits
				}
			}
			return b
		}
		idle := func() bill {
			for range 3 { // the cursors pass what was handled
				burst()
				time.Sleep(time.Minute)
			}
			return burst()
		}
		first := write("first")
		idle()
		handled := burst(first)
		one := burst(write("one"))
		var ten []subscriber.Hint
		for n := range 10 {
			ten = append(ten, write(fmt.Sprint("ten", n)))
		}
		bills = append(bills, handled, one, burst(ten...), idle())
		write("swept")
		bills = append(bills, burst())
	})
	return bills
}
