// Command ordersaga runs a process manager: orders are approved when credit, ticket and payment are there, and undone when they are not.
//
//	go run ./examples/ordersaga
package main

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

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

	check(a.grant(ctx, "anna", 700))
	for _, order := range []struct {
		id    string
		total int
	}{{"lunch", 30}, {"party", 600}, {"palace", 100_000}} {
		check(a.place(ctx, order.id, "anna", order.total))
		state, err := a.outcome(ctx, order.id)
		check(err)
		fmt.Println(order.id, "over", order.total, "is", strings.TrimSpace(state.Status+" "+state.Reason))
	}
	credit, err := a.credit(ctx, "anna", func(c services.Customer) bool { return c.Released["party"] })
	check(err)
	fmt.Println("credit left:", credit)
	check(a.close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
