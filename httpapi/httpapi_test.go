package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/httpapi"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
)

func TestEachErrorHasAStatus(t *testing.T) {
	t.Parallel()
	for status, errs := range map[int][]error{
		http.StatusOK: {nil},
		http.StatusBadRequest: {
			&aggregate.InvalidIDError{}, &aggregate.InvalidTokenError{}, projection.ErrPageToken, &repository.SameParticipantError{},
			&projection.QueryError{Field: "Limit"},
		},
		http.StatusNotFound: {journal.ErrNotFound, &repository.RefusedError{Err: fmt.Errorf("%w: no such order", journal.ErrNotFound)}},
		http.StatusConflict: {
			&repository.RefusedError{Err: errors.New("sold out")}, &repository.RefusedError{Err: context.DeadlineExceeded},
			&journal.ConflictError{}, &journal.WriteRefusedError{},
		},
		http.StatusUnprocessableEntity:   {&repository.CommandMismatchError{}},
		http.StatusGone:                  {&journal.DeletedError{}, journal.ErrKeyDestroyed},
		http.StatusRequestEntityTooLarge: {&journal.TooLargeError{}},
		http.StatusServiceUnavailable: {
			journal.ErrThrottled, journal.ErrContended, journal.ErrUnavailable, journal.ErrOutcomeUnknown,
			&repository.AttemptsError{Err: journal.ErrConflict}, context.DeadlineExceeded, context.Canceled,
			&types.ProvisionedThroughputExceededException{},
		},
		http.StatusInternalServerError: {errors.New("nil map"), &projection.QueryError{Field: "Index"}, journal.ErrAccess, journal.ErrTableMissing, repository.ErrNilDecision},
	} {
		for _, err := range errs {
			assert.Equal(t, status, httpapi.Status(err), "%T %v", err, err)
			if err != nil {
				assert.Equal(t, status, httpapi.Status(fmt.Errorf("place order: %w", err)), "%T %v", err, err)
			}
		}
	}
}

func TestErrorsOfTheSDKAreUnavailable(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dynamotest.Fault{
		"throttled": dynamotest.Throttle(), "failed": dynamotest.InternalError(), "without a reply": dynamotest.CutConnection(),
	} {
		db := dynamotest.New(t)
		db.Inject(fault)
		_, err := db.Client().ListTables(t.Context(), &dynamodb.ListTablesInput{})
		require.Error(t, err)
		assert.Equal(t, http.StatusServiceUnavailable, httpapi.Status(err), "%s: %v", name, err)
	}
}

var request = httptest.NewRequest(http.MethodPost, "/orders/42", nil)

func write(err error, reply httpapi.Reply) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	httpapi.Write(w, request, err, reply)
	return w
}

func TestAReplyHasStatusTokenAndBody(t *testing.T) {
	t.Parallel()
	w := write(nil, httpapi.Reply{
		Status: http.StatusAccepted, Body: map[string]int{"order": 42},
		Token: aggregate.Token{{ID: aggregate.ID{Type: "order", Value: "42"}, Version: 7}},
	})
	assert.Equal(t, http.StatusAccepted, w.Code)
	assert.Equal(t, "order:42@7", w.Header().Get(consistency.Header))
	assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
	assert.Equal(t, "{\"order\":42}\n", w.Body.String())

	w = write(nil, httpapi.Reply{})
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Empty(t, w.Header())
	assert.Empty(t, w.Body.String())
}

// It replaces the default logger, so it cannot run in parallel.
func TestAClientSeesOnlyTheErrorsThatAreItsOwn(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)

	w := write(&repository.RefusedError{Err: errors.New("sold out")}, httpapi.Reply{Token: aggregate.Token{{Version: 1}}, Body: "x"})
	assert.Equal(t, "sold out\n", w.Body.String())
	assert.Empty(t, w.Header().Get(consistency.Header))
	assert.Empty(t, log.String())

	w = write(fmt.Errorf("table secret: %w", journal.ErrThrottled), httpapi.Reply{})
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
	assert.NotContains(t, w.Body.String(), "secret")
	assert.Contains(t, log.String(), "secret")
	assert.Contains(t, log.String(), "path=/orders/42 status=503")

	w = write(fmt.Errorf("%w: table secret", projection.ErrPageToken), httpapi.Reply{})
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.NotContains(t, w.Body.String(), "secret")

	log.Reset()
	w = write(nil, httpapi.Reply{Body: func() {}})
	assert.Equal(t, http.StatusInternalServerError, w.Code, "a body that cannot be encoded")
	assert.Contains(t, log.String(), "unsupported type")

	log.Reset()
	gone, leave := context.WithCancel(t.Context())
	leave()
	httpapi.Write(httptest.NewRecorder(), request.WithContext(gone), gone.Err(), httpapi.Reply{})
	assert.Empty(t, log.String(), "the client has gone")
}

func TestABodyIsOneJSONDocument(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		status int
		text   string
	}{
		`{"Seat": "A1"}`:          {http.StatusOK, ""},
		" {\"Seat\": \"A1\"} \n ": {http.StatusOK, ""},
		"":                        {http.StatusBadRequest, "the body is empty"},
		`{"Seat": `:               {http.StatusBadRequest, "unexpected EOF"},
		`{"Seat": 1}`:             {http.StatusBadRequest, "cannot unmarshal number"},
		`{"Seat": "A1"} {}`:       {http.StatusBadRequest, "there is more"},
		`{"Seat": "A1"}}`:         {http.StatusBadRequest, "there is more"},
		`{"Seat": "` + strings.Repeat("x", httpapi.MaxBody) + `"}`:         {http.StatusRequestEntityTooLarge, "more than 1048576 bytes"},
		`{"Seat": "A1"}` + strings.Repeat(" ", httpapi.MaxBody) + `"more"`: {http.StatusRequestEntityTooLarge, "more than 1048576 bytes"},
	} {
		w := httptest.NewRecorder()
		var into struct{ Seat string }
		ok := httpapi.Read(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)), &into)
		name := body[:min(len(body), 20)]
		assert.Equal(t, want.status == http.StatusOK, ok, name)
		assert.Equal(t, want.status, w.Code, name)
		assert.Contains(t, w.Body.String(), want.text, name)
		assert.Equal(t, ok, into.Seat == "A1" && w.Body.Len() == 0, name)
	}
}

func TestARepeatedRequestHasTheSameCommandID(t *testing.T) {
	t.Parallel()
	id := func(method, path, key string, scope ...string) string {
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set(httpapi.IdempotencyKey, key)
		return httpapi.CommandID(r, scope...)
	}
	seen := map[string]bool{}
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		for _, path := range []string{"/orders", "/orders/1"} {
			for _, key := range []string{"1", "2", "1 1"} {
				for _, scope := range [][]string{nil, {"ada"}, {"ada", "1"}, {"ada 1"}, {`ada" "1`}} {
					first := id(method, path, key, scope...)
					assert.False(t, seen[first], "%s %s %s %q", method, path, key, scope)
					seen[first] = true
					assert.Equal(t, first, id(method, path, key, scope...))
				}
			}
		}
	}
	first, second := id(http.MethodPost, "/orders", ""), id(http.MethodPost, "/orders", "")
	assert.NotEqual(t, first, second, "without a key each request is a new one")
	assert.Equal(t, "9bc4d552-fbc7-5173-a468-8b4d748f3943", id(http.MethodPost, "/orders", "1", "ada"), "a later version must recognise it")
}

func TestOnceNeedsAKeyAndComparesTheBody(t *testing.T) {
	t.Parallel()
	j := testjournal.New(t, dynamotest.New(t).Client(), journal.Config{Layout: journal.Packed, Shards: 1})
	repo := testjournal.Repository(t, j, aggregate.Define[seats]("seats", taken{}), repository.Config{})
	n := 0
	send := func(key, body string) error {
		r := httptest.NewRequest(http.MethodPost, "/shows/hamlet", strings.NewReader(body))
		if key != "" {
			r.Header.Set(httpapi.IdempotencyKey, key)
		}
		var into struct{ Seat string }
		require.True(t, httpapi.Read(httptest.NewRecorder(), r, &into))
		again, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		assert.Equal(t, body, string(again))
		n++
		_, err = repo.Execute(t.Context(), "hamlet", take(fmt.Sprint(n)), httpapi.Once(r)...)
		return err
	}
	version := func() uint64 {
		s, err := repo.Load(t.Context(), "hamlet")
		require.NoError(t, err)
		return s.Version
	}
	for range 2 {
		require.NoError(t, send("", `{"seat": "A1"}`))
	}
	assert.EqualValues(t, 2, version(), "without a key each request is a new one")
	for range 2 {
		require.NoError(t, send("1", `{"seat": "A1"}`))
	}
	assert.EqualValues(t, 3, version())
	require.ErrorAs(t, send("1", `{"seat": "A2"}`), new(*repository.CommandMismatchError))
	require.NoError(t, send("2", `{"seat": "A2"}`))
	assert.EqualValues(t, 4, version())
}
