// Package wait has queries that wait for what was written.
package wait

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/httpapi"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

// PlaceAndWait places an order, and waits until a query of the group's read model shows it.
func PlaceAndWait(ctx context.Context, orders *repository.Repository[shop.Order], g *groups.Groups, id string) (shown bool, err error) {
	order, err := orders.Execute(ctx, id, shop.Place("ada", 30))
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err = g.WaitApplied(ctx, "totals", order.ID, order.Version)
	if errors.Is(err, groups.ErrNotApplied) {
		return false, nil // the order is placed; the read model is late
	}
	return err == nil, err
}

// Serving waits for the generation that queries read, and returns it.
func Serving(ctx context.Context, model *readmodel.Model, g *groups.Groups, t aggregate.Token) (readmodel.Generation, error) {
	serving, err := model.Serving(ctx)
	if err != nil {
		return serving, err
	}
	return serving, g.WaitToken(ctx, serving.Group(), t)
}

// Routes answers commands with a token, and has queries wait for it.
func Routes(app *millrace.App, orders *repository.Repository[shop.Order], totals http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		order, err := orders.Execute(r.Context(), r.PathValue("id"), shop.Place("ada", 30))
		httpapi.Write(w, r, err, httpapi.Reply{Status: http.StatusCreated, Token: order.Token()})
	})
	mux.Handle("GET /totals/", app.Consistent("totals", consistency.Config{})(totals))
	return mux
}
