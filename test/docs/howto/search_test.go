package howto_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
	"github.com/millrace-dev/millrace/test/docs/howto/search"
)

func product(id string) aggregate.ID { return aggregate.ID{Type: "product", Value: id} }

// catalog runs an App with products, to which add adds a group.
func catalog(t *testing.T, client *dynamodb.Client, add func(*millrace.App, *repository.Repository[search.Product]) error) (
	products *repository.Repository[search.Product], app *millrace.App, stop func() error,
) {
	t.Helper()
	app, err := millrace.Open(t.Context(), client, millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 1}})
	require.NoError(t, err)
	products, err = millrace.Repository(app, search.Products, repository.Config{})
	require.NoError(t, err)
	require.NoError(t, add(app, products))
	stop, err = app.Start(t.Context())
	require.NoError(t, err)
	return products, app, stop
}

func TestWordsAreFoundInSQLiteAndAgainAfterARebuild(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "products.db")+"?_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	_, err = db.ExecContext(t.Context(), search.Schema)
	require.NoError(t, err)
	store, err := sqlprojection.New(db, sqlprojection.Config{Dialect: sqlprojection.SQLite})
	require.NoError(t, err)
	require.NoError(t, store.CreateTable(t.Context()))
	client := dynamotest.New(t).Client()
	add := func(app *millrace.App, _ *repository.Repository[search.Product]) error {
		return search.AddSQLite(app, store)
	}
	products, app, stop := catalog(t, client, add)

	for id, events := range map[string][]any{"tea": {"Tea", "green leaves"}, "pot": {"Pot", "for green tea"}, "cup": {"Cup", "blue"}} {
		_, err := products.Execute(t.Context(), id, search.Record(search.Listed{Title: events[0].(string), Text: events[1].(string)}))
		require.NoError(t, err)
	}
	_, err = products.Execute(t.Context(), "pot", search.Record(search.Described{Text: "for black tea"}))
	require.NoError(t, err)
	_, err = products.Execute(t.Context(), "cup", search.Record(search.Withdrawn{}))
	require.NoError(t, err)

	g := groups.New(app.Journal(), groups.WithPositions(store))
	found := func() {
		t.Helper()
		for id, version := range map[string]uint64{"tea": 1, "pot": 2, "cup": 2} {
			require.NoError(t, g.WaitApplied(t.Context(), "products", product(id), version))
		}
		for text, want := range map[string][]string{"green": {"tea"}, "TEA black": {"pot"}, "blue": nil, `pot"`: {"pot"}, "tea OR": nil} {
			ids, err := search.Find(t.Context(), db, text)
			require.NoError(t, err)
			assert.Equal(t, want, ids, text)
		}
		// It fails if the index is not exactly that of the products.
		_, err := db.ExecContext(t.Context(), "INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
		require.NoError(t, err)
	}
	found()

	require.NoError(t, stop())
	_, err = db.ExecContext(t.Context(), "DELETE FROM products")
	require.NoError(t, err)
	require.NoError(t, groups.Of(app.Journal(), "products", "product").Reset(t.Context(), subscriber.Beginning(), nil))
	_, _, stop = catalog(t, client, add)
	found()
	require.NoError(t, stop())
}

// openSearch is an index that honours version_type=external, as OpenSearch does.
type openSearch struct {
	mu        sync.Mutex
	lost      int // how many replies are lost yet
	versions  map[string]uint64
	documents map[string]search.Product
	conflicts int
}

func (o *openSearch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	version, err := strconv.ParseUint(r.URL.Query().Get("version"), 10, 64)
	id := r.PathValue("id")
	switch {
	case err != nil || r.URL.Query().Get("version_type") != "external":
		w.WriteHeader(http.StatusBadRequest)
		return
	case version <= o.versions[id]:
		o.conflicts++
		w.WriteHeader(http.StatusConflict)
		return
	}
	var document search.Product
	if err := json.NewDecoder(r.Body).Decode(&document); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	o.versions[id], o.documents[id] = version, document
	if o.lost > 0 {
		o.lost--
		w.WriteHeader(http.StatusBadGateway)
	}
}

func TestRepeatedAndLateWritesToOpenSearchChangeNothing(t *testing.T) {
	t.Parallel()
	o := &openSearch{lost: 3, versions: map[string]uint64{}, documents: map[string]search.Product{}}
	mux := http.NewServeMux()
	mux.Handle("PUT /products/_doc/{id}", o)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client := dynamotest.New(t).Client()
	products, app, stop := catalog(t, client, func(app *millrace.App, products *repository.Repository[search.Product]) error {
		return search.AddOpenSearch(app, "products", products, server.Client(), server.URL+"/products")
	})
	const id = "tea/1"
	_, err := products.Execute(t.Context(), id, search.Record(search.Listed{Title: "Tea", Text: "0"}))
	require.NoError(t, err)
	for n := range 20 {
		_, err := products.Execute(t.Context(), id, search.Record(search.Described{Text: fmt.Sprint(n + 1)}))
		require.NoError(t, err)
	}
	applied := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, app.Groups().WaitApplied(ctx, "products", product(id), 21))
	}
	applied()
	require.NoError(t, stop())
	want := map[string]search.Product{id: {Title: "Tea", Text: "20"}}
	assert.Equal(t, want, o.documents)
	assert.Positive(t, o.conflicts, "an event whose reply was lost came again")

	before := o.versions[id]
	require.NoError(t, app.Groups().Of("products", "product").Reset(t.Context(), subscriber.Beginning(), nil))
	_, app, stop = catalog(t, client, func(app *millrace.App, products *repository.Repository[search.Product]) error {
		return search.AddOpenSearch(app, "products", products, server.Client(), server.URL+"/products")
	})
	applied()
	require.NoError(t, stop())
	assert.Equal(t, want, o.documents, "all events again")
	assert.Equal(t, before, o.versions[id])
}
