package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/examples/booking/show"
	"github.com/millrace-dev/millrace/repository"
)

// schedule adds a show: PUT /shows/{show} {"price": 4200, "seats": ["A1", "A2"]}.
func (a *App) schedule(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Price int      `json:"price"`
		Seats []string `json:"seats"`
	}
	if !read(w, r, &body) {
		return
	}
	if body.Price <= 0 || slices.Contains(body.Seats, "") {
		http.Error(w, "price is in cents and above 0, and each seat has a name", http.StatusBadRequest)
		return
	}
	s, err := a.shows.Execute(r.Context(), r.PathValue("show"), show.Schedule(body.Price, body.Seats...))
	if reply(w, err) {
		consistency.Set(w, s.Token())
		w.WriteHeader(http.StatusCreated)
	}
}

// bookings is the namespace for the ids of bookings.
var bookings = uuid.MustParse("0b8e3f8c-3c0f-4d53-9a5f-6a1c6d7a2f10")

// hold begins a booking: POST /shows/{show}/bookings {"customer": "ada", "seats": ["A1"]}. To
// repeat a request, a client sends it again with the same Idempotency-Key.
func (a *App) hold(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Customer string   `json:"customer"`
		Seats    []string `json:"seats"`
	}
	if !read(w, r, &body) {
		return
	}
	if body.Customer == "" || len(body.Customer) > 200 {
		http.Error(w, "customer has 1 to 200 bytes", http.StatusBadRequest)
		return
	}
	booking := uuid.NewString()
	// The same key leads to the same booking.
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		booking = uuid.NewSHA1(bookings, fmt.Append(nil, r.PathValue("show"), "/", key)).String()
	}
	s, err := a.shows.Execute(r.Context(), r.PathValue("show"), show.Hold(booking, body.Customer, body.Seats...), repository.WithCommandID(booking))
	if reply(w, err) {
		consistency.Set(w, s.Token())
		write(w, http.StatusAccepted, map[string]string{"booking": booking})
	}
}

func (a *App) seats(w http.ResponseWriter, r *http.Request) {
	if seats, err := a.views.SeatsOf(r.Context(), r.PathValue("show")); reply(w, err) {
		write(w, http.StatusOK, seats)
	}
}

func (a *App) bookings(w http.ResponseWriter, r *http.Request) {
	if bookings, err := a.views.BookingsOf(r.Context(), r.PathValue("customer")); reply(w, err) {
		write(w, http.StatusOK, bookings)
	}
}

func read(w http.ResponseWriter, r *http.Request, into any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(into)
	if err != nil {
		http.Error(w, "the body is not the expected JSON", http.StatusBadRequest)
	}
	return err == nil
}

// reply writes the response for an error, and reports whether err is nil.
func reply(w http.ResponseWriter, err error) bool {
	switch {
	case err == nil:
		return true
	case errors.As(err, new(*aggregate.InvalidIDError)):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.As(err, new(*repository.RefusedError)):
		http.Error(w, err.Error(), http.StatusConflict)
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "try again", http.StatusServiceUnavailable)
	}
	return false
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
