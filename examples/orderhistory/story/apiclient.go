package story

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/millrace-dev/millrace/examples/orderhistory/history"
)

// apiClient asks the REST API as another program would.
type apiClient struct {
	http *http.Client
	base string
}

// refusal is a problem that the API reports.
type refusal struct {
	Status int
	Title  string
	Detail string
}

func (e *refusal) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Title, e.Detail) }

func (c *apiClient) orders(ctx context.Context, consumer string, query url.Values) (page history.Page, err error) {
	err = c.get(ctx, "/consumers/"+url.PathEscape(consumer)+"/orders?"+query.Encode(), &page)
	return page, err
}

func (c *apiClient) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	decoder := json.NewDecoder(response.Body)
	if response.StatusCode != http.StatusOK {
		refused := &refusal{}
		if err := decoder.Decode(refused); err != nil {
			return fmt.Errorf("GET %s: %s without a problem document: %w", path, response.Status, err)
		}
		return refused
	}
	if into == nil {
		return nil
	}
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return nil
}
