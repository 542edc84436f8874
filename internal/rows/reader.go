package rows

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Client is the part of a *dynamodb.Client that queries.
type Client interface {
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

// Reader reads pages of events. It is for one page at a time.
type Reader struct {
	Names *Names
	// Begin is called before the first row of a reply. It is called again if an attempt failed
	// after some rows, which do not count then.
	Begin func()
	// Take is called with each row, which is valid until Take returns.
	Take func(*Row)

	last     Row
	protocol protocol
}

// Query reads one page and returns the key after which the next one begins, nil if there is none.
//
// A client that is not the SDK's own, for example one that looks into replies, reads them itself;
// its items become rows with all attributes in Other.
func (r *Reader) Query(ctx context.Context, client Client, in *dynamodb.QueryInput) (lastKey map[string]types.AttributeValue, err error) {
	var options []func(*dynamodb.Options)
	if _, own := client.(*dynamodb.Client); own {
		options = append(options, func(o *dynamodb.Options) {
			if o.Protocol != nil {
				r.protocol.ClientProtocol, r.protocol.reader, o.Protocol = o.Protocol, r, &r.protocol
			}
		})
	}
	out, err := client.Query(ctx, in, options...)
	if err != nil {
		return nil, err
	}
	if !r.protocol.read {
		r.Begin()
		for _, it := range out.Items {
			r.last = Row{Other: it, whole: true}
			r.Take(&r.last)
		}
	}
	return out.LastEvaluatedKey, nil
}

// Last returns the last row of the page as an item.
func (r *Reader) Last() map[string]types.AttributeValue { return r.Names.Item(&r.last) }
