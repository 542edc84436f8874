package costs

import (
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

const consolePage = "../../docs/operations/console.md"

func TestThePageOfTheConsoleSaysWhatItsPagesCost(t *testing.T) {
	t.Parallel()
	stored, err := os.ReadFile(consolePage)
	require.NoError(t, err)
	const begin, end = "<!-- console -->\n", "<!-- /console -->"
	before, rest, found := strings.Cut(string(stored), begin)
	require.True(t, found, "docs/operations/console.md has %q", begin)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found, "docs/operations/console.md has %q", end)
	text := before + begin + consolePages(t) + end + after
	if *update {
		require.NoError(t, os.WriteFile(consolePage, []byte(text), 0o644))
		return
	}
	assert.Equal(t, text, string(stored), "what pages cost has changed: see whether it should, and run go test ./test/costs -update")
}

// consolePages returns the table of the pages of a small application, and of a growing one.
func consolePages(t *testing.T) string {
	t.Helper()
	bills := map[journal.Layout][]pageBill{}
	for _, layout := range layouts {
		bills[layout] = pageBills(t, layout)
	}
	var b strings.Builder
	b.WriteString(header([]string{"page"}, "requests", "read units"))
	for i, row := range bills[layouts[0]] {
		fmt.Fprintf(&b, "| %s |", row.name)
		for _, layout := range layouts {
			fmt.Fprintf(&b, " %d | %g |", bills[layout][i].Requests, bills[layout][i].ReadUnits)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// pageBill is the cost that a page reports.
type pageBill struct {
	name      string
	Requests  int
	ReadUnits float64 `json:"read_units"`
}

// pageBills reads the pages of a topic with 101 documents. One document has 60 events, with a
// snapshot after event 50. Each of the others has one event.
func pageBills(t *testing.T, layout journal.Layout) (bills []pageBill) {
	t.Helper()
	w := consoleWorld(t, layout, 4)
	page := func(name, path string) {
		t.Helper()
		bills = append(bills, w.page(t, name, path))
	}
	page("overview: a topic, a group, a process manager", "")
	page("topic", "topic?name=document")
	page("aggregates", "aggregates?type=document")
	page("aggregate: the newest 25 events, and their states", "aggregate?type=document&id=long")
	page("aggregate: one event, and its state", "aggregate?type=document&id=long&from=60&to=60")
	page("aggregate: at a time", "aggregate?type=document&id=long&at=2020-01-01")
	page("live tail, before it begins", "tail?topic=document")
	page("groups", "groups")
	page("group", "group?name=totals&topic=document")
	page("behind, with nothing blocked or parked", "behind?name=totals&topic=document")
	page("models", "models")
	page("processes: what is due", "processes")
	w.write(t, "document", 100)
	page("groups: the group has not handled 100 events", "groups")
	w.consume(t, "list.1", "document")
	page("overview: a second group on the topic", "")
	page("model: one generation", "model?name=list")
	w.write(t, "letter", 100)
	w.consume(t, "totals", "letter")
	page("overview: a second topic, with a group", "")
	w.park(t, "mails", "letter", 100)
	page("behind: 50 parked aggregates", "behind?name=mails&topic=letter")
	bills = append(bills, consoleWorld(t, layout, 16).page(t, "overview: 16 shards", ""))
	return bills
}

type consoleOf struct {
	world
	n int
	c *console.Console
}

func consoleWorld(t *testing.T, layout journal.Layout, shards int) *consoleOf {
	t.Helper()
	w := &consoleOf{}
	w.t, w.db = t, dynamotest.New(t)
	config := journal.Config{Shards: shards, Layout: layout}
	w.j = testjournal.New(t, w.db.Client(), config)
	require.NoError(t, process.CreateTable(t.Context(), w.db.Client(), process.DefaultTable))
	require.NoError(t, readmodel.CreateTable(t.Context(), w.db.Client(), readmodel.DefaultTable))
	_, err := readmodel.Open(t.Context(), w.db.Client(), readmodel.Config{Name: "list", Journal: w.j, Topics: []string{"document"}})
	require.NoError(t, err)
	w.write(t, "document", 100)
	documents := w.repository(repository.Config{Snapshots: repository.Every(50)})
	for range 60 {
		testjournal.Execute(t, documents, "long", always(written(200, 1000)))
	}
	w.consume(t, "totals", "document")
	w.c, err = console.New(console.Config{App: &consoleApp{w, documents}, Refresh: -1})
	require.NoError(t, err)
	t.Cleanup(w.c.Close)
	return w
}

// consoleApp is an application with a repository and a process manager.
type consoleApp struct {
	w         *consoleOf
	documents *repository.Repository[Document]
}

type manager struct{}

func (manager) Stats() process.Stats { return process.Stats{} }

func (a *consoleApp) Journal() *journal.Journal { return a.w.j }
func (a *consoleApp) Groups() *groups.Groups    { return groups.New(a.w.j) }
func (a *consoleApp) Backlog() *process.Backlog {
	return process.NewBacklog(a.w.db.Client(), process.DefaultTable)
}
func (*consoleApp) ReadModelTable() string { return readmodel.DefaultTable }

func (a *consoleApp) Components() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		_ = yield("documents", a.documents) && yield("saga", manager{})
	}
}

// write makes aggregates of one event.
func (w *consoleOf) write(t *testing.T, aggregateType string, n int) {
	t.Helper()
	event, err := Documents.Encode(written(200, 0))
	require.NoError(t, err)
	for range n {
		w.n++
		testjournal.Append(t, w.j, storage.Commit{
			Aggregate: aggregate.ID{Type: aggregateType, Value: fmt.Sprintf("%s%04d", id[:len(id)-4], w.n)},
			Events:    []storage.Event{{Type: event.Type, Payload: event.Payload}},
		})
	}
}

// consume makes a group handle all events of a topic. Its member leaves.
func (w *consoleOf) consume(t *testing.T, name, topic string) {
	t.Helper()
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: w.j, ConsumerGroup: name}, nil)
	require.NoError(t, err)
	messages, err := sub.Subscribe(t.Context(), topic)
	require.NoError(t, err)
	go func() {
		for msg := range messages {
			msg.Ack()
		}
	}()
	require.Eventually(t, func() bool {
		lag, err := groups.Of(w.j, name, topic).Lag(t.Context(), groups.LagOptions{})
		return err == nil && lag.Events == 0
	}, patience, 20*time.Millisecond)
	require.NoError(t, sub.Close())
}

// park makes a group park at least n aggregates of a topic.
func (w *consoleOf) park(t *testing.T, name, topic string, n int) {
	t.Helper()
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: w.j, ConsumerGroup: name, Failures: subscriber.Park(1)}, nil)
	require.NoError(t, err)
	messages, err := sub.Subscribe(t.Context(), topic)
	require.NoError(t, err)
	go func() {
		for msg := range messages {
			msg.Nack()
		}
	}()
	require.Eventually(t, func() bool {
		parked := 0
		for _, err := range groups.Of(w.j, name, topic).Parked(t.Context(), aggregate.ID{}) {
			if err != nil {
				return false
			}
			parked++
		}
		return parked >= n
	}, patience, 20*time.Millisecond)
	require.NoError(t, sub.Close())
}

// page reads the document of a page.
func (w *consoleOf) page(t *testing.T, name, path string) pageBill {
	t.Helper()
	answer := httptest.NewRecorder()
	w.c.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/"+path, http.NoBody))
	require.Equal(t, http.StatusOK, answer.Code, "%s: %s", path, answer.Body)
	bill := pageBill{name: name}
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &bill))
	return bill
}
