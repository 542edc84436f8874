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

// apiClient asks the REST API as another program would.
type apiClient struct {
	http *http.Client
	base string

	accepted, refused, again atomic.Int64 // commands
}

// refusal is a problem that the API reports.
type refusal struct {
	Status int
	Title  string
	Detail string
}

func (e *refusal) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Title, e.Detail) }

// sendTwice is how many commands there are for each one that is sent twice though it was answered.
const sendTwice = 10

// command sends a command until it is answered. It is not found as long as a policy has not made
// what it is for; the caller says for how long that is waited for.
func (c *apiClient) command(ctx context.Context, do step) error {
	key := uuid.NewString() // the same whenever it is sent
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

// insist sends a command that was accepted once more: that must be accepted too, and changes
// nothing.
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

// get asks again while the database is busy.
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
	// Longer than the API takes for anything, so that the answer is its own.
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
