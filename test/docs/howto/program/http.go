package program

import (
	"net/http"

	"github.com/millrace-dev/millrace/httpapi"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

func place(orders *repository.Repository[shop.Order]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Customer string
			Total    int
		}
		if !httpapi.Read(w, r, &body) {
			return
		}
		o, err := orders.Execute(r.Context(), r.PathValue("id"), shop.Place(body.Customer, body.Total))
		httpapi.Write(w, r, err, httpapi.Reply{Status: http.StatusCreated, Token: o.Token()})
	}
}
