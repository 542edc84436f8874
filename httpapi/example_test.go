package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/httpapi"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

type (
	seats struct{ Taken map[string]bool }
	taken struct{ Seat string }
)

func (taken) EventType() string { return "seats.taken.v1" }

func (e taken) Apply(s *seats) {
	if s.Taken == nil {
		s.Taken = map[string]bool{}
	}
	s.Taken[e.Seat] = true
}

func take(seat string) aggregate.Decision[seats] {
	return func(s seats) (aggregate.Events[seats], error) {
		if s.Taken[seat] {
			return nil, errors.New("the seat is taken")
		}
		return aggregate.Events[seats]{taken{seat}}, nil
	}
}

func Example() {
	ctx := context.Background()
	db := dynamotest.Open()
	defer db.Close()
	config := journal.Config{Layout: journal.Packed, Shards: 1}
	check(journal.Create(ctx, db.Client(), config))
	j, err := journal.Open(ctx, db.Client(), config)
	check(err)
	shows, err := repository.New(j, aggregate.Define[seats]("seats", taken{}), repository.Config{})
	check(err)

	mux := http.NewServeMux()
	mux.HandleFunc("POST /shows/{show}/bookings", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Customer, Seat string }
		if !httpapi.Read(w, r, &body) {
			return
		}
		show, err := shows.Execute(r.Context(), r.PathValue("show"), take(body.Seat), httpapi.Once(r)...)
		httpapi.Write(w, r, err, httpapi.Reply{Status: http.StatusCreated, Token: show.Token()})
	})

	post := func(customer, body string) {
		r := httptest.NewRequest(http.MethodPost, "/shows/hamlet/bookings", strings.NewReader(body))
		r.Header.Set("Idempotency-Key", customer)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.TrimSpace(w.Header().Get("Consistency-Token")+w.Body.String()))
	}
	post("ada", `{"customer": "ada", "seat": "A1"}`)
	post("ada", `{"customer": "ada", "seat": "A1"}`) // she repeats it
	post("ada", `{"customer": "ada", "seat": "A2"}`) // another request with the same key
	post("bob", `{"customer": "bob", "seat": "A1"}`)
	post("bob", `{"customer": "bob"`)

	// Output:
	// 201 seats:hamlet@1
	// 201 seats:hamlet@1
	// 422 the Idempotency-Key was used for another request: send a new one
	// 409 the seat is taken
	// 400 the body is not the JSON of this request: unexpected EOF
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
