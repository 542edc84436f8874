package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace-dev/millrace/examples/booking/effects"
)

// call is the body of a request to the bank or the mail service.
type call struct {
	Key      string
	Amount   int
	To, Text string
}

// services returns the routes of the bank and the mail service.
func services(bank effects.Bank, post effects.Post) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, serve func(ctx context.Context, c call) (declined string, err error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			var c call
			if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			declined, err := serve(r.Context(), c)
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			_ = json.NewEncoder(w).Encode(declined) // an error means that the client has gone
		})
	}
	handle("POST /charge", func(ctx context.Context, c call) (string, error) { return bank.Charge(ctx, c.Key, c.Amount) })
	handle("POST /refund", func(ctx context.Context, c call) (string, error) { return "", bank.Refund(ctx, c.Key) })
	handle("POST /mail", func(ctx context.Context, c call) (string, error) { return "", post.Send(ctx, c.Key, c.To, c.Text) })
	return mux
}

// client is an effects.Bank and an effects.Post.
type client struct{ url string }

// Charge implements [effects.Bank].
func (c client) Charge(ctx context.Context, key string, amount int) (declined string, err error) {
	return c.call(ctx, "/charge", call{Key: key, Amount: amount})
}

// Refund implements [effects.Bank].
func (c client) Refund(ctx context.Context, key string) error {
	_, err := c.call(ctx, "/refund", call{Key: key})
	return err
}

// Send implements [effects.Post].
func (c client) Send(ctx context.Context, key, to, text string) error {
	_, err := c.call(ctx, "/mail", call{Key: key, To: to, Text: text})
	return err
}

func (c client) call(ctx context.Context, path string, body call) (declined string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	encoded, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(encoded))
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", path, response.Status)
	}
	return declined, json.NewDecoder(response.Body).Decode(&declined)
}
