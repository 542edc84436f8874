package console_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

type shelf struct{ Books int }

type placed struct{ Title string }

func (placed) EventType() string { return "shelf.placed.v1" }
func (placed) Apply(s *shelf)    { s.Books++ }

// An application serves its console under /console/. Operators may act if the proxy in front sends
// their name.
func ExampleNew() {
	ctx := context.Background()
	app, err := millrace.Open(ctx, dynamotest.Open().Client(), millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 4}})
	if err != nil {
		log.Fatal(err)
	}
	shelves, err := millrace.Repository(app, aggregate.Define[shelf]("shelf", placed{}), repository.Config{})
	if err != nil {
		log.Fatal(err)
	}

	c, err := console.New(console.Config{
		App:          app,
		AllowActions: true,
		Logger:       watermill.NewSlogLogger(nil), // the audit log
		Authorize: func(r *http.Request, _ console.Action) (string, error) {
			user := r.Header.Get("X-Forwarded-User")
			if user == "" {
				return "", errors.New("sign in first")
			}
			return user, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/console/", c)
	server := &http.Server{Handler: mux}
	server.RegisterOnShutdown(c.Close)

	_, err = shelves.Execute(ctx, "novels", func(shelf) (aggregate.Events[shelf], error) {
		return aggregate.Events[shelf]{placed{"Emma"}}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/console/aggregate?type=shelf&id=novels", http.NoBody))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
