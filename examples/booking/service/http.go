package service

import (
	"net/http"
	"slices"

	"github.com/millrace-dev/millrace/examples/booking/show"
	"github.com/millrace-dev/millrace/httpapi"
)

// schedule adds a show: PUT /shows/{show} {"price": 4200, "seats": ["A1", "A2"]}.
func (a *App) schedule(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Price int      `json:"price"`
		Seats []string `json:"seats"`
	}
	if !httpapi.Read(w, r, &body) {
		return
	}
	if body.Price <= 0 || slices.Contains(body.Seats, "") {
		http.Error(w, "price is in cents and above 0, and each seat has a name", http.StatusBadRequest)
		return
	}
	s, err := a.shows.Execute(r.Context(), r.PathValue("show"), show.Schedule(body.Price, body.Seats...))
	httpapi.Write(w, r, err, httpapi.Reply{Status: http.StatusCreated, Token: s.Token()})
}

// hold begins a booking: POST /shows/{show}/bookings {"customer": "ada", "seats": ["A1"]}. To
// repeat a request, a client sends it again with the same Idempotency-Key.
func (a *App) hold(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Customer string   `json:"customer"`
		Seats    []string `json:"seats"`
	}
	if !httpapi.Read(w, r, &body) {
		return
	}
	if body.Customer == "" || len(body.Customer) > 200 {
		http.Error(w, "customer has 1 to 200 bytes", http.StatusBadRequest)
		return
	}
	booking := httpapi.CommandID(r)
	s, err := a.shows.Execute(r.Context(), r.PathValue("show"), show.Hold(booking, body.Customer, body.Seats...), httpapi.Once(r)...)
	httpapi.Write(w, r, err, httpapi.Reply{
		Status: http.StatusAccepted, Token: s.Token(), Body: map[string]string{"booking": booking},
	})
}

func (a *App) seats(w http.ResponseWriter, r *http.Request) {
	seats, err := a.views.SeatsOf(r.Context(), r.PathValue("show"))
	httpapi.Write(w, r, err, httpapi.Reply{Body: seats})
}

func (a *App) bookings(w http.ResponseWriter, r *http.Request) {
	bookings, err := a.views.BookingsOf(r.Context(), r.PathValue("customer"))
	httpapi.Write(w, r, err, httpapi.Reply{Body: bookings})
}
