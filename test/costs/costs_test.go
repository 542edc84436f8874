// Package costs measures the costs of operations by the capacity that dynamotest consumes, which
// follows the published rules of AWS. It compares them with docs/reference/cost.md, so that a
// change of a cost fails the test.
//
//	go test ./test/costs -update
//
// writes the tables of the page again.
package costs

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
)

// patience limits a failing test. It is not a claim about speed.
const patience = 2 * time.Minute

const page = "../../docs/reference/cost.md"

var update = flag.Bool("update", false, "write the tables of docs/reference/cost.md")

// Document is a state of a given size.
type Document struct{ Text string }

// Written changes the state to one of State bytes. Pad makes the event itself larger.
type Written struct {
	State int
	Pad   string
}

func (Written) EventType() string   { return "document.written.v1" }
func (e Written) Apply(d *Document) { d.Text = text[:e.State] }

var text = sample(0, 100_000)

var Documents = aggregate.Define[Document]("document", Written{})

const id = "0c9b0a3e-5a3f-4b6e-9d0c-2f1e8a7b6c5d" // ids often have this length

var document = aggregate.ID{Type: "document", Value: id}

// The sizes of an event's payload and of a state, as the page names them.
var (
	eventSizes = []int{200, 1_000, 10_000}
	stateSizes = []int{1_000, 10_000, 100_000}
)

// written returns an event with a payload of the given size.
func written(event, state int) aggregate.Event[Document] { return writtenAs(1, event, state) }

// writtenAs returns events with other texts for other numbers.
func writtenAs(number, event, state int) aggregate.Event[Document] {
	e := Written{State: state}
	payload, _ := aggregate.JSON.Marshal(e)
	e.Pad = sample(number, event-len(payload))
	return e
}

// world is a database with one journal.
type world struct {
	t  *testing.T
	db *dynamotest.DB
	j  *journal.Journal
}

// newWorld returns a world whose journal does not compress.
func newWorld(t *testing.T, layout journal.Layout) world {
	t.Helper()
	db := dynamotest.New(t)
	config := journal.Config{Shards: 4, Layout: layout}
	require.NoError(t, journal.Create(t.Context(), db.Client(), config))
	if layout == journal.Packed {
		setFirstFormat(t, db)
	}
	return world{t, db, testjournal.Open(t, db.Client(), config)}
}

func (w world) repository(config repository.Config) *repository.Repository[Document] {
	w.t.Helper()
	return testjournal.Repository(w.t, w.j, Documents, config)
}

// with creates the aggregate: the first commit stores a snapshot of the given size, and n events
// follow.
func (w world) with(state, n, size int) world {
	w.t.Helper()
	r := w.repository(repository.Config{Snapshots: repository.Every(1)})
	testjournal.Execute(w.t, r, id, always(written(200, state)))
	if n == 0 {
		return w
	}
	for head := 1; n > 0; {
		events := make([]storage.Event, min(n, 50))
		for i := range events {
			event, err := Documents.Encode(writtenAs(head+i, size, state))
			require.NoError(w.t, err)
			events[i] = storage.Event{Type: event.Type, Payload: event.Payload}
		}
		testjournal.Append(w.t, w.j, storage.Commit{
			Aggregate: document, Expected: uint64(head), Events: events,
		})
		head, n = head+len(events), n-len(events)
	}
	return w
}

func always(events ...aggregate.Event[Document]) aggregate.Decision[Document] {
	return func(Document) (aggregate.Events[Document], error) { return events, nil }
}

// bill is the cost of an operation.
type bill struct {
	trips       int
	read, write float64
	writes      map[string]float64 // by table or index
}

func (w world) bill(do func(context.Context) error) bill {
	w.t.Helper()
	recording := w.db.Record()
	require.NoError(w.t, do(w.t.Context()))
	b := bill{writes: map[string]float64{}}
	for _, call := range recording.Calls() {
		b.trips++
		b.read += call.ReadUnits
		b.write += call.WriteUnits
		for _, c := range call.Capacity {
			name := c.Table
			if c.Index != "" {
				name = c.Index
			}
			b.writes[name] += c.WriteUnits
		}
	}
	return b
}

// layouts are the layouts with columns on the page.
var layouts = []journal.Layout{journal.Classic, journal.Packed}

// header returns the first lines of a table: some columns, and then others for each layout.
func header(columns []string, ofLayout ...string) string {
	for _, layout := range layouts {
		for _, column := range ofLayout {
			if len(layouts) > 1 {
				column += ", " + string(layout)
			}
			columns = append(columns, column)
		}
	}
	return "| " + strings.Join(columns, " | ") + " |\n" + strings.Repeat("|---", len(columns)) + "|\n"
}

// kb returns a size in KB, which are 1,000 bytes here. DynamoDB's KB are 1,024 bytes, and an item
// has keys and names in addition to its payload.
func kb(bytes int) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(bytes)/1000), ".0") }

func classicCommits(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| event KB | state KB | journal | journal-aid-index | journal-tail-index | snapshot | snapshot-aid-index | in all | with a snapshot |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, event := range eventSizes {
		for _, state := range stateSizes {
			save := func(policy repository.SnapshotPolicy) bill {
				return newWorld(t, journal.Classic).with(state, 0, 0).saved(1, event, state, policy)
			}
			without, with := save(repository.Never), save(repository.Every(1))
			assert.Equal(t, 1, without.trips)
			assert.Equal(t, 1, with.trips)
			fmt.Fprintf(&b, "| %s | %s | %g | %g | %g | %g | %g | **%g** | **%g** |\n", kb(event), kb(state),
				without.writes["journal"], without.writes["journal-aid-index"], without.writes["journal-tail-index"],
				without.writes["snapshot"], without.writes["snapshot-aid-index"], without.write, with.write)
		}
	}
	return b.String()
}

// saved measures Save of events of a loaded aggregate.
func (w world) saved(n, event, state int, policy repository.SnapshotPolicy) bill {
	w.t.Helper()
	r := w.repository(repository.Config{Snapshots: policy})
	a, err := r.Load(w.t.Context(), id)
	require.NoError(w.t, err)
	return w.bill(func(ctx context.Context) error {
		_, err := r.Save(ctx, a, several(n, event, state))
		return err
	})
}

func several(n, event, state int) aggregate.Events[Document] {
	events := make(aggregate.Events[Document], n)
	for i := range events {
		events[i] = writtenAs(i+1, event, state)
	}
	return events
}

// packedCommits returns the table of commits in the packed layout, in worlds of one kind.
func packedCommits(t *testing.T, newWorld func(*testing.T) world) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| events | of KB | journal | journal-tail-index | in all | the first of an aggregate |")
	for _, state := range stateSizes {
		fmt.Fprintf(&b, " with a snapshot of %s KB |", kb(state))
	}
	b.WriteString("\n" + strings.Repeat("|---", 6+len(stateSizes)) + "|\n")
	for _, event := range slices.Insert(slices.Clone(eventSizes), 2, 2_000) {
		for _, n := range []int{1, 10} {
			w := newWorld(t)
			first := w.bill(func(ctx context.Context) error {
				_, err := w.repository(repository.Config{}).Save(ctx, repository.Aggregate[Document]{ID: document}, several(n, event, 0))
				return err
			})
			next := w.saved(n, event, 0, repository.Never)
			assert.Equal(t, 1, first.trips)
			assert.Equal(t, 1, next.trips)
			fmt.Fprintf(&b, "| %d | %s | %g | %g | **%g** | **%g** |",
				n, kb(event), next.writes["journal"], next.writes["journal-tail-index"], next.write, first.write)
			for _, state := range stateSizes {
				with := newWorld(t).with(state, 0, 0).saved(n, event, state, repository.Every(1))
				assert.Equal(t, 2, with.trips)
				fmt.Fprintf(&b, " %g |", with.write)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func loads(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	names, line, _ := strings.Cut(header([]string{"state KB", "events since its snapshot", "of KB"}, "round trips", "read units"), "\n")
	b.WriteString(names + " the same, compressed |\n" + strings.TrimSuffix(line, "\n") + "---|\n")
	row := func(state, n, event int) {
		size := ""
		if n > 0 {
			size = kb(event)
		}
		fmt.Fprintf(&b, "| %s | %d | %s |", kb(state), n, size)
		for _, layout := range layouts {
			bill := newWorld(t, layout).with(state, n, event).loaded()
			fmt.Fprintf(&b, " %d | %g |", bill.trips, bill.read)
		}
		fmt.Fprintf(&b, " %g |\n", compressing(t).with(state, n, event).loaded().read)
	}
	for _, state := range stateSizes {
		row(state, 0, 1_000)
	}
	for _, event := range eventSizes {
		for _, n := range []int{5, 100, 1_500} {
			row(10_000, n, event)
		}
	}
	return b.String()
}

// others returns the table of operations on an aggregate with a state of 10 KB, and events of 1 KB.
func others(t *testing.T) string {
	t.Helper()
	const event, state = 1_000, 10_000
	saved := func(n int, config repository.Config, options ...repository.Option) func(w world) bill {
		return func(w world) bill {
			r := w.repository(config)
			a, err := r.Load(w.t.Context(), id)
			require.NoError(t, err)
			return w.bill(func(ctx context.Context) error {
				_, err := r.Save(ctx, a, several(n, event, state), options...)
				return err
			})
		}
	}
	executed := func(config repository.Config, prepare func(*repository.Repository[Document]) error, options ...repository.Option) func(w world) bill {
		return func(w world) bill {
			r := w.repository(config)
			require.NoError(t, prepare(r))
			return w.bill(func(ctx context.Context) error {
				_, err := r.Execute(ctx, id, always(written(event, state)), options...)
				return err
			})
		}
	}
	nothing := func(*repository.Repository[Document]) error { return nil }
	loaded := func(r *repository.Repository[Document]) error {
		_, err := r.Load(t.Context(), id)
		return err
	}
	never := repository.Config{Snapshots: repository.Never}
	every := repository.Config{Snapshots: repository.Every(1)}
	kept := repository.Config{Snapshots: repository.Every(1), Redundancy: &repository.Redundancy{}}
	// filled creates an aggregate of 51 events: one, then 49 in commits of n, then one with a
	// snapshot.
	filled := func(w world, n int) {
		for range 49 / n {
			saved(n, never)(w)
		}
		saved(1, every)(w)
	}
	truncated := func(w world, n int) bill {
		filled(w, n)
		return w.bill(func(ctx context.Context) error { return w.j.Truncate(ctx, document, 51, journal.RemoveOptions{}) })
	}
	deleted := func(w world, n int) bill {
		filled(w, n)
		return w.bill(func(ctx context.Context) error { return w.j.Delete(ctx, document, 51, journal.RemoveOptions{}) })
	}
	var b strings.Builder
	b.WriteString(header([]string{"operation"}, "round trips", "read units", "write units"))
	for _, o := range []struct {
		name string
		do   func(w world) bill
	}{
		{"Save of 1 event", saved(1, never)},
		{"Save of 10 events", saved(10, never)},
		{"Save of 1 event with a command id", saved(1, never, repository.WithCommandID(id))},
		{"Save of 1 event with a snapshot", saved(1, every)},
		{"the same, the first with a redundant one", saved(1, kept)},
		{"the same, each further one, with one to remove", func(w world) bill {
			saved(1, kept)(w)
			return saved(1, kept)(w)
		}},
		{"Execute, from a snapshot that is up to date", executed(repository.Config{}, nothing)},
		{"Execute with a warm cache", executed(repository.Config{Cache: 1}, loaded)},
		{"Execute with a command id, repeated", executed(repository.Config{}, func(r *repository.Repository[Document]) error {
			_, err := r.Execute(t.Context(), id, always(written(event, state)), repository.WithCommandID("1"))
			return err
		}, repository.WithCommandID("1"))},
		{"Execute with a command id, refused by the decision", func(w world) bill {
			r := w.repository(repository.Config{})
			return w.bill(func(ctx context.Context) error {
				_, err := r.Execute(ctx, id, func(Document) (aggregate.Events[Document], error) { return nil, errRefused }, repository.WithCommandID("1"))
				require.ErrorIs(t, err, errRefused)
				return nil
			})
		}},
		{"Load with a warm cache", func(w world) bill {
			r := w.repository(repository.Config{Cache: 1})
			require.NoError(t, loaded(r))
			return w.bill(func(context.Context) error { return loaded(r) })
		}},
		{"LoadAtVersion, 5 events after a redundant snapshot", func(w world) bill {
			r := w.repository(repository.Config{Snapshots: repository.Every(10), Redundancy: &repository.Redundancy{Keep: 3}})
			for range 25 {
				testjournal.Execute(t, r, id, always(written(event, state)))
			}
			return w.bill(func(ctx context.Context) error {
				_, err := r.LoadAtVersion(ctx, id, 15)
				return err
			})
		}},
		{"Execute with a warm cache, after a conflict over one event", func(w world) bill {
			r := w.repository(repository.Config{Cache: 1})
			require.NoError(t, loaded(r))
			saved(1, never)(w)
			return w.bill(func(ctx context.Context) error {
				_, err := r.Execute(ctx, id, always(written(event, state)))
				return err
			})
		}},
		{"Save of 1 event with a write of 1 KB", func(w world) bill {
			_, err := w.db.Client().CreateTable(t.Context(), &dynamodb.CreateTableInput{
				TableName: aws.String("outbox"), BillingMode: types.BillingModePayPerRequest,
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
			})
			require.NoError(t, err)
			row := types.TransactWriteItem{Put: &types.Put{TableName: aws.String("outbox"), Item: map[string]types.AttributeValue{
				"id": &types.AttributeValueMemberS{Value: text[:1000]},
			}}}
			return saved(1, never, repository.WithWrites(func(repository.Commit) ([]types.TransactWriteItem, error) {
				return []types.TransactWriteItem{row}, nil
			}))(w)
		}},
		{"Execute over 2 aggregates with a warm cache, 1 event each", together(event, state, 0)},
		{"the same, with a command id", together(event, state, 0, repository.WithCommandID("1"))},
		{"the same, repeated", togetherAgain(event, state)},
		{"Execute over 2 aggregates with a warm cache, refused by the decision", togetherRefused(event, state)},
		{"Execute over 3 aggregates with a warm cache, one of them only read", together(event, state, 1)},
		{"Journal.Resolve", func(w world) bill {
			return w.bill(func(ctx context.Context) error {
				_, err := w.j.Resolve(ctx, &journal.OutcomeUnknownError{ID: document, First: 1, CommitID: "c"})
				return err
			})
		}},
		{"Truncate of 50 events, in 50 commits", func(w world) bill { return truncated(w, 1) }},
		{"the same, in 2 commits", func(w world) bill { return truncated(w, 49) }},
		{"Delete with 51 events, in 51 commits", func(w world) bill { return deleted(w, 1) }},
		{"the same, in 3 commits", func(w world) bill { return deleted(w, 49) }},
		{"Journal.Version", func(w world) bill {
			return w.bill(func(ctx context.Context) error {
				_, err := w.j.Version(ctx, document)
				return err
			})
		}},
		{"Publish of 1 message, its stream known", published(1, event)},
		{"the same, 50 messages of 0.2 KB", published(50, 200)},
	} {
		fmt.Fprintf(&b, "| %s |", o.name)
		for _, layout := range layouts {
			bill := o.do(newWorld(t, layout).with(state, 0, 0))
			fmt.Fprintf(&b, " %d | %g | %g |", bill.trips, bill.read, bill.write)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// together measures a decision over several aggregates, all with a state of one size. Two of them
// get an event, and some are only read.
func together(event, state, reads int, options ...repository.Option) func(w world) bill {
	return func(w world) bill {
		all, decide := warmParts(w, event, state, 2+reads)
		return w.bill(func(ctx context.Context) error { return all.Execute(ctx, decide, options...) })
	}
}

func togetherAgain(event, state int) func(w world) bill {
	return func(w world) bill {
		all, decide := warmParts(w, event, state, 2)
		require.NoError(w.t, all.Execute(w.t.Context(), decide, repository.WithCommandID("1")))
		return w.bill(func(ctx context.Context) error { return all.Execute(ctx, decide, repository.WithCommandID("1")) })
	}
}

func togetherRefused(event, state int) func(w world) bill {
	return func(w world) bill {
		all, _ := warmParts(w, event, state, 2)
		return w.bill(func(ctx context.Context) error {
			err := all.Execute(ctx, func() error { return errRefused })
			require.ErrorIs(w.t, err, errRefused)
			return nil
		})
	}
}

var errRefused = errors.New("refused")

// warmParts creates aggregates that are in the cache, and a decision that appends an event to the
// first two.
func warmParts(w world, event, state, n int) (*repository.Transaction, func() error) {
	r := w.repository(repository.Config{Snapshots: repository.Never, Cache: 10})
	var all repository.Transaction
	parts := make([]*repository.Participant[Document], n)
	for i := range parts {
		parts[i] = r.AddTo(&all, fmt.Sprintf("%s%02d", id[:len(id)-2], i))
		testjournal.Execute(w.t, r, parts[i].ID.Value, always(written(event, state)))
	}
	return &all, func() error {
		for _, p := range parts[:2] {
			p.Append(written(event, state))
		}
		return nil
	}
}

// published measures publishing messages to a stream that the Publisher knows.
func published(n, size int) func(w world) bill {
	return func(w world) bill {
		p, err := publisher.NewPublisher(publisher.Config{Journal: w.j}, nil)
		require.NoError(w.t, err)
		publish := func(n int) error {
			messages := make([]*message.Message, n)
			for i := range messages {
				messages[i] = message.NewMessage(fmt.Sprintf("%s%02d", id[:len(id)-2], i), make([]byte, size))
			}
			return p.Publish("document", messages...)
		}
		require.NoError(w.t, publish(1))
		b := w.bill(func(context.Context) error { return publish(n) })
		require.NoError(w.t, p.Close())
		return b
	}
}

func TestThePageOfCostsSaysWhatDynamoDBBills(t *testing.T) {
	t.Parallel()
	stored, err := os.ReadFile(page)
	require.NoError(t, err)
	text := string(stored)
	tables := map[string]string{
		"commit-classic": classicCommits(t), "commit-packed": packedCommits(t, plain), "commit-compressed": packedCommits(t, compressing),
		"load":           loads(t),
		"other":          others(t),
		"handling":       handlings(t),
		"membership":     membership(t),
		"reconciliation": reconciliations(t),
		"bursts":         bursts(t),
	}
	for name, table := range tables {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, found := strings.Cut(text, begin)
		require.True(t, found, "docs/reference/cost.md has %q", begin)
		_, after, found := strings.Cut(rest, end)
		require.True(t, found, "docs/reference/cost.md has %q", end)
		text = before + begin + table + end + after
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
		return
	}
	assert.Equal(t, text, string(stored), "what operations cost has changed: see whether it should, and run go test ./test/costs -update")
}
