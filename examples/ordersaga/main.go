// Command ordersaga runs a process manager. It approves an order if credit, ticket and payment
// succeed, and undoes the completed steps otherwise.
//
//	go run ./examples/ordersaga
package main

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/examples/ordersaga/services"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := dynamo.Client(ctx)
	check(err)
	a, err := start(ctx, client, time.Now)
	check(err)

	// If the tables are from an earlier run, everything happens again with other ids.
	run := uuid.NewString()
	anna := "anna-" + run
	check(a.grant(ctx, anna, 700))
	for _, order := range []struct {
		name  string
		total int
	}{{"lunch", 30}, {"party", 600}, {"palace", 100_000}} {
		check(a.place(ctx, order.name+run, anna, order.total))
		state, err := a.outcome(ctx, order.name+run)
		check(err)
		fmt.Println(order.name, "over", order.total, "is", strings.TrimSpace(state.Status+" "+state.Reason))
	}
	credit, err := a.credit(ctx, anna, func(c services.Customer) bool { return c.Released["party"+run] })
	check(err)
	fmt.Println("credit left:", credit)
	check(a.close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
