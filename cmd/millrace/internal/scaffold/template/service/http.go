package service

import (
	"net/http"

	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/httpapi"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold/template/order"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold/template/views"
)

// Routes returns the HTTP interface. The reply to a command has the header Consistency-Token. A
// query that sends it waits until the read model shows the command. A client that repeats a command
// sends the same Idempotency-Key.
func (a *App) Routes() http.Handler {
	consistent := a.Consistent("orders", consistency.Config{Topics: []string{"order"}})
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /orders/{order}", a.place)
	mux.HandleFunc("POST /orders/{order}/payment", a.pay)
	mux.Handle("GET /orders/{order}", consistent(http.HandlerFunc(a.get)))
	mux.Handle("GET /customers/{customer}/orders", consistent(http.HandlerFunc(a.list)))
	return mux
}

// place begins an order: PUT /orders/{order} {"customer": "ada", "amount": 4200}.
func (a *App) place(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Customer string `json:"customer"`
		Amount   int    `json:"amount"`
	}
	if httpapi.Read(w, r, &body) {
		a.execute(w, r, http.StatusCreated, order.Place(body.Customer, body.Amount))
	}
}

// pay records a payment: POST /orders/{order}/payment.
func (a *App) pay(w http.ResponseWriter, r *http.Request) {
	a.execute(w, r, http.StatusOK, order.Pay)
}

func (a *App) execute(w http.ResponseWriter, r *http.Request, status int, decide order.Decision) {
	o, err := a.orders.Execute(r.Context(), r.PathValue("order"), decide, httpapi.Once(r)...)
	httpapi.Write(w, r, err, httpapi.Reply{Status: status, Token: o.Token()})
}

// get returns an order: GET /orders/{order}.
func (a *App) get(w http.ResponseWriter, r *http.Request) {
	row, found, err := a.views.Get(r.Context(), r.PathValue("order"))
	if err == nil && !found {
		http.Error(w, "there is no such order", http.StatusNotFound)
		return
	}
	httpapi.Write(w, r, err, httpapi.Reply{Body: row})
}

// list returns a page of the orders of a customer: GET /customers/{customer}/orders?page=NEXT. The
// index that it reads follows the table within moments.
func (a *App) list(w http.ResponseWriter, r *http.Request) {
	page, err := a.views.Page(r.Context(), views.OrdersOf(r.PathValue("customer"), r.URL.Query().Get("page")))
	httpapi.Write(w, r, err, httpapi.Reply{Body: map[string]any{"orders": page.Rows, "next": page.NextToken}})
}
