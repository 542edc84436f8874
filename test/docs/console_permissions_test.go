package docs

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/permissions"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestConsolesNeedTheirPermissionsAndNoOthers(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		for _, acts := range []bool{false, true} {
			name := map[bool]string{false: " that read", true: " that act"}[acts]
			t.Run(string(layout)+name, func(t *testing.T) {
				t.Parallel()
				w := newConsoleWorld(t, layout)
				past := testjournal.Open(t, w.db.Client(), journal.Config{Now: func() time.Time { return time.Now().Add(-2 * groups.FenceTime) }})
				// Rows of before this reset may be deleted.
				require.NoError(t, groups.Of(past, "list.2", "tally").Reset(t.Context(), subscriber.Beginning(), nil))
				used := spy(w.db)
				if acts {
					w.act(t)
				}
				w.readAll(t)

				program := map[bool]string{false: "console", true: "console with actions"}[acts]
				allowed, found := permissions.Of(layout, program), permissions.Set{}
				for _, u := range used() {
					assert.Contains(t, allowed[resourceOf(u)], u.Action, "on %s", resourceOf(u))
					found[resourceOf(u)] = append(found[resourceOf(u)], u.Action)
				}
				for resource, actions := range allowed {
					for _, action := range actions {
						// An index that has not caught up, or an aggregate with many events.
						isFallback := action == "BatchGetItem" || action == "Query" && resource == permissions.Snapshot ||
							action == "Query" && resource == permissions.Journal && layout == journal.Classic
						if !isFallback {
							assert.Contains(t, found[resource], action, "which is not needed on %s", resource)
						}
					}
				}
			})
		}
	}
}

// consoleWorld is a journal with a group that has parked some aggregates, a read model and a
// process.
type consoleWorld struct {
	db *dynamotest.DB
	j  *journal.Journal
	c  *console.Console
}

type reminder struct{}

type reminded struct{}

func (reminded) EventType() string { return "reminded" }
func (reminded) Apply(*reminder)   {}

func newConsoleWorld(t *testing.T, layout journal.Layout) *consoleWorld {
	t.Helper()
	w := &consoleWorld{db: dynamotest.New(t)}
	client := w.db.Client()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 1, Layout: layout}))
	require.NoError(t, process.CreateTable(t.Context(), client, process.DefaultTable))
	require.NoError(t, readmodel.CreateTable(t.Context(), client, readmodel.DefaultTable))
	var err error
	w.j = testjournal.Open(t, client, journal.Config{})
	r := testjournal.Repository(t, w.j, tallies, repository.Config{Snapshots: repository.Every(2)})
	for _, id := range []string{"a", "b", "c", "d"} {
		for range 3 {
			testjournal.Execute(t, r, id, func(tally) (aggregate.Events[tally], error) { return aggregate.Events[tally]{counted{}}, nil })
		}
	}
	w.park(t, "totals")
	w.park(t, "list.2")
	w.begin(t)
	w.remind(t)
	w.c, err = console.New(console.Config{
		Journal: w.j, Repositories: []repository.AnyRepository{r}, Refresh: -1, AllowActions: true, Logger: watermill.NopLogger{},
		Authorize: func(*http.Request, console.Action) (string, error) { return "test", nil },
	})
	require.NoError(t, err)
	t.Cleanup(w.c.Close)
	return w
}

// park makes a new group park all aggregates.
func (w *consoleWorld) park(t *testing.T, group string) {
	t.Helper()
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: w.j, ConsumerGroup: group, Failures: subscriber.Park(1), Start: subscriber.At(time.Now().Add(-time.Hour)),
	}, nil)
	require.NoError(t, err)
	messages, err := sub.Subscribe(t.Context(), "tally")
	require.NoError(t, err)
	go func() {
		for msg := range messages {
			msg.Nack()
		}
	}()
	require.Eventually(t, func() bool {
		parked := 0
		for _, err := range groups.Of(w.j, group, "tally").Parked(t.Context(), aggregate.ID{}) {
			if err == nil {
				parked++
			}
		}
		return parked == 4
	}, time.Minute, 20*time.Millisecond)
	require.NoError(t, sub.Close())
}

// begin makes a read model with two generations.
func (w *consoleWorld) begin(t *testing.T) {
	t.Helper()
	m, err := readmodel.Open(t.Context(), w.db.Client(), readmodel.Config{Name: "list", Journal: w.j, Topics: []string{"tally"}})
	require.NoError(t, err)
	_, err = m.Begin(t.Context())
	require.NoError(t, err)
}

// remind makes processes that have a timeout.
func (w *consoleWorld) remind(t *testing.T) {
	t.Helper()
	long := time.Now().Add(-time.Hour)
	// The type is the name of a group, by which consoles know it.
	definition := process.Define(aggregate.Define[reminder]("totals", reminded{}),
		process.On(func(_ counted, in process.Input) string { return in.Source.Value }, func(reminder, counted, process.Input) (process.Step[reminder], error) {
			return process.Record(reminded{}).SetTimeout("late", time.Minute), nil
		}).Starts(),
		process.OnTimeout("late", func(reminder, process.Input) (process.Step[reminder], error) { return process.Step[reminder]{}, nil }),
	).EndsWhen(func(reminder) bool { return false })
	manager, err := process.New(w.j, w.db.Client(), definition, process.Config{Now: func() time.Time { return long }})
	require.NoError(t, err)
	for _, id := range []string{"p", "q"} {
		msg := message.NewMessageWithContext(t.Context(), "event-"+id, []byte(`{}`))
		msg.Metadata = message.Metadata{"name": "counted.v1", "aggregate_type": "tally", "aggregate_id": id}
		require.NoError(t, manager.Handle(msg))
	}
}

// readAll opens every page, and a live tail.
func (w *consoleWorld) readAll(t *testing.T) {
	t.Helper()
	for _, path := range []string{
		"", "?find=1", "topic?name=tally", "aggregates?type=tally", "aggregate?type=tally&id=a", "aggregate?type=tally&id=a&from=2&to=2",
		"aggregate?type=tally&id=a&at=2100-01-01", "tail?topic=tally", "groups", "group?name=totals&topic=tally", "behind?name=totals&topic=tally",
		"skipped?name=totals&topic=tally", "models", "model?name=list", "processes", "processes?show=pending", "processes?show=open",
		"process?type=totals&id=p",
	} {
		status, body := w.get(t.Context(), "/api/"+path)
		require.Equal(t, http.StatusOK, status, "%s: %s", path, body)
	}
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	status, body := w.get(ctx, "/stream?topic=tally&format=json")
	require.Equal(t, http.StatusOK, status, body)
}

func (w *consoleWorld) get(ctx context.Context, path string) (status int, body string) {
	answer := httptest.NewRecorder()
	w.c.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody))
	return answer.Code, answer.Body.String()
}

// act does every action.
func (w *consoleWorld) act(t *testing.T) {
	t.Helper()
	page := httptest.NewRecorder()
	w.c.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/group?name=totals&topic=tally", http.NoBody))
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(page.Body.String())
	require.NotNil(t, token)
	for id, action := range map[string]string{"p": "retry-pending", "q": "drop-pending"} {
		for p, err := range process.NewBacklog(w.db.Client(), process.DefaultTable).Pending(t.Context(), process.BacklogQuery{Type: "totals", ID: id}) {
			require.NoError(t, err)
			w.do(t, page, token[1], "action="+action+"&type=totals&id="+id+"&row="+url.QueryEscape(p.Row)+"&at="+p.At.UTC().Format(time.RFC3339Nano))
		}
	}
	of := "&group=totals&topic=tally&type=tally"
	for _, form := range []string{
		"action=pause" + of, "action=resume" + of, "action=retry" + of + "&id=a", "action=skip" + of + "&id=b&number=1",
		"action=retry-skipped" + of + "&id=b&number=1", "action=retry-all-skipped" + of, "action=forget-skipped" + of + "&id=b&number=1",
		"action=reset-aggregate" + of + "&id=b&number=0", "action=skip-all" + of + "&event_type=counted.v1&confirm=totals",
		"action=reset-aggregate" + of + "&id=c&number=0", "action=retry-all" + of + "&event_type=counted.v1",
		"action=reset" + of + "&to=beginning&confirm=totals",
		"action=retry-all&group=list.2&topic=tally", "action=reset&group=list.2&topic=tally&to=now&confirm=list.2",
		"action=switch&model=list&number=2", "action=rollback&model=list&number=2",
	} {
		w.do(t, page, token[1], form)
	}
}

func (w *consoleWorld) do(t *testing.T, page *httptest.ResponseRecorder, token, form string) {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, "/action", strings.NewReader(form+"&back=./&token="+url.QueryEscape(token)))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, cookie := range page.Result().Cookies() {
		request.AddCookie(cookie)
	}
	answer := httptest.NewRecorder()
	w.c.ServeHTTP(answer, request)
	require.Equal(t, http.StatusSeeOther, answer.Code, "%s: %s", form, answer.Body)
}
