package consistency_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/consistency"
)

func ExampleMiddleware() {
	// In a service: groups.New(j).WaitToken(ctx, "order-history", token)
	wait := func(_ context.Context, token aggregate.Token) error {
		fmt.Println("wait for", token)
		return nil
	}
	query := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the order") })
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		// In a service: order, err := orders.Execute(...), and then order.Token()
		consistency.Set(w, aggregate.Token{{ID: aggregate.ID{Type: "order", Value: r.PathValue("id")}, Version: 1}})
	})
	mux.Handle("GET /orders/{id}", consistency.Middleware(wait, consistency.Config{})(query))

	command := httptest.NewRecorder()
	mux.ServeHTTP(command, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
	request := httptest.NewRequest(http.MethodGet, "/orders/42", nil)
	request.Header.Set(consistency.Header, command.Header().Get(consistency.Header))
	reply := httptest.NewRecorder()
	mux.ServeHTTP(reply, request)
	fmt.Println(reply.Code, reply.Body)

	// Output:
	// wait for order:42@1
	// 200 the order
}
