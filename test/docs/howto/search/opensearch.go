package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	neturl "net/url"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// AddOpenSearch adds a group that keeps the products of an index up to date. The url is that of the
// index. Each index needs a group of its own.
func AddOpenSearch(app *millrace.App, group string, products *repository.Repository[Product], client *http.Client, url string) error {
	return app.Handle(millrace.Group{Name: group, Topics: []string{"product"}}, func(msg *message.Message) error {
		id, _, _ := subscriber.AggregateFromContext(msg.Context())
		product, err := products.Load(msg.Context(), id.Value) // at this event or a later one
		if errors.As(err, new(*journal.DeletedError)) {
			return nil // the program that deletes a product deletes its document
		}
		if err != nil {
			return err
		}
		return index(msg.Context(), client, url, product)
	})
}

// index writes the document of a product, unless the index has this version or a later one.
func index(ctx context.Context, client *http.Client, url string, product repository.Aggregate[Product]) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	document, err := json.Marshal(product.State)
	if err != nil {
		return err
	}
	url = fmt.Sprintf("%s/_doc/%s?version=%d&version_type=external", url, neturl.PathEscape(product.ID.Value), product.Version)
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader(document))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	switch {
	case reply.StatusCode == http.StatusConflict:
		return nil // repeated or late
	case reply.StatusCode >= 300:
		return fmt.Errorf("index product %s: OpenSearch answers %s", product.ID.Value, reply.Status)
	}
	return nil
}
