package story

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/examples/orderhistory/history"
)

// apiClient calls the REST API as another program would.
type apiClient struct {
	http *http.Client
	base string

	accepted, refused, again atomic.Int64 // commands
}

// refusal is a problem document of the API.
type refusal struct {
	Status int
	Title  string
	Detail string
}

func (e *refusal) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Title, e.Detail) }

// sendTwice says how often a command is sent twice although the API has replied: one of ten.
const sendTwice = 10

// command sends a command until there is a reply. The reply is "not found" until a policy has
// created the aggregate; the caller limits how often that is retried.
func (c *apiClient) command(ctx context.Context, do step) error {
	key := uuid.NewString() // the same for each attempt
	var answered error
	err := wait(ctx, func(ctx context.Context) (bool, error) {
		err := c.send(ctx, http.MethodPost, do.path, do.body, key, nil)
		var problem *refusal
		switch {
		case errors.As(err, &problem) && problem.Status == http.StatusNotFound && do.tries != 1:
			do.tries--
			return false, nil
		case errors.As(err, &problem) && problem.Status >= http.StatusInternalServerError:
			c.again.Add(1)
			return false, nil
		}
		answered = err
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("POST %s: %w", do.path, err)
	}
	var problem *refusal
	switch {
	case answered == nil:
		if c.accepted.Add(1)%sendTwice == 0 {
			c.again.Add(1)
			return c.insist(ctx, do, key)
		}
		return nil
	case errors.As(answered, &problem) && (problem.Status == http.StatusConflict || problem.Status == http.StatusNotFound):
		c.refused.Add(1)
		return nil
	}
	return fmt.Errorf("POST %s: %w", do.path, answered)
}

// insist sends an accepted command again. The API must accept it again and change nothing.
func (c *apiClient) insist(ctx context.Context, do step, key string) error {
	err := wait(ctx, func(ctx context.Context) (bool, error) {
		err := c.send(ctx, http.MethodPost, do.path, do.body, key, nil)
		var problem *refusal
		if errors.As(err, &problem) && problem.Status >= http.StatusInternalServerError {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("%w: POST %s was accepted, and not when it was sent again: %w", ErrWrong, do.path, err)
	}
	return nil
}

func (c *apiClient) orders(ctx context.Context, consumer string, query url.Values) (page history.Page, err error) {
	err = c.get(ctx, "/consumers/"+url.PathEscape(consumer)+"/orders?"+query.Encode(), &page)
	return page, err
}

// get sends a query, and repeats it while the database is busy.
func (c *apiClient) get(ctx context.Context, path string, into any) (err error) {
	return wait(ctx, func(ctx context.Context) (bool, error) {
		err := c.send(ctx, http.MethodGet, path, nil, "", into)
		var problem *refusal
		if errors.As(err, &problem) && problem.Status >= http.StatusInternalServerError {
			return false, nil
		}
		return true, err
	})
}

func (c *apiClient) send(ctx context.Context, method, path string, body any, key string, into any) error {
	// Longer than any time limit of the API, so that the error is from the API.
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, payload)
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	decoder := json.NewDecoder(response.Body)
	if response.StatusCode >= 300 {
		refused := &refusal{}
		if err := decoder.Decode(refused); err != nil {
			return fmt.Errorf("%s %s: %s without a problem document: %w", method, path, response.Status, err)
		}
		return refused
	}
	if into == nil {
		_, err = io.Copy(io.Discard, response.Body) // so that the connection is used again
		return err
	}
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}
