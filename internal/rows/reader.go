package rows

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Client is the part of a *dynamodb.Client that reads items.
type Client interface {
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
}

// Source is a client, and whether its replies can be decoded into rows.
type Source struct {
	Client Client
	// SDK reports whether the client is the SDK's own, or a wrapper that passes options on to it
	// and does not read the items of its replies. Any other client decodes its replies itself.
	SDK bool
}

// Page is the reply to a Query.
type Page[T any] struct {
	Items   []T
	Last    Row // the last row; nil if there is none
	LastKey map[string]types.AttributeValue
}

// Query reads one page and converts each row by calling of. A row is valid until that call returns,
// but its strings and bytes may be kept. A middleware of the client sees the output without items.
func Query[T any](ctx context.Context, s Source, in *dynamodb.QueryInput, of func(Row) T) (page Page[T], err error) {
	p := &protocol{
		begin: func() { page.Items = nil },
		take:  func(r Row) { page.Items = append(page.Items, of(r)) },
	}
	out, err := s.Client.Query(ctx, in, s.options(p)...)
	if err != nil {
		return Page[T]{}, err
	}
	if !p.read {
		for _, it := range out.Items {
			p.row = Of(it)
			p.take(p.row)
		}
	}
	page.Last, page.LastKey = p.row, out.LastEvaluatedKey
	return page, nil
}

// BatchGet reads items by key, and converts each row as Query does. It also returns the keys that
// DynamoDB has not read.
func BatchGet[T any](ctx context.Context, s Source, in *dynamodb.BatchGetItemInput, of func(Row) T) (items []T, unprocessed map[string]types.KeysAndAttributes, err error) {
	p := &protocol{
		begin: func() { items = nil },
		take:  func(r Row) { items = append(items, of(r)) },
	}
	out, err := s.Client.BatchGetItem(ctx, in, s.options(p)...)
	if err != nil {
		return nil, nil, err
	}
	if !p.read {
		for _, table := range out.Responses {
			for _, it := range table {
				p.take(Of(it))
			}
		}
	}
	return items, out.UnprocessedKeys, nil
}

func (s Source) options(p *protocol) (options []func(*dynamodb.Options)) {
	if !s.SDK {
		return nil
	}
	return []func(*dynamodb.Options){func(o *dynamodb.Options) {
		if o.Protocol != nil {
			p.ClientProtocol, o.Protocol = o.Protocol, p
		}
	}}
}
