package dynamotest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
	"github.com/millrace-dev/millrace/dynamotest/internal/wire"
)

// Proxy stands between a client and a database, and injects faults as a [DB] does. Use it for
// DynamoDB Local or AWS, or for one of several programs that share a DB. It is safe for concurrent
// use.
//
// It supports all faults and conditions of this package except [DelayIndex], [StaleReads], [Hold]
// and [Tear], which happen inside the database: Inject panics for these. Each [Call] has the
// capacity units that the reply reports if the client requested them. Operations that [DB] does not
// support pass unchanged.
//
// Close simulates a crash: later calls fail, and replies to open calls are dropped.
type Proxy struct {
	injector
	client  *dynamodb.Client
	schemas schemas
}

// NewProxy returns a proxy in front of the database of a client, and closes it when the test ends.
// If the test fails, it logs the same information as [New].
func NewProxy(t TB, client *dynamodb.Client, options ...Option) *Proxy {
	t.Helper()
	p := OpenProxy(client, options...)
	p.closeWith(t)
	return p
}

// OpenProxy returns a proxy in front of the database of a client. Close closes it.
func OpenProxy(client *dynamodb.Client, options ...Option) *Proxy {
	s := settingsOf(options)
	mustBe(s.expiry == 0, "WithExpiryDelay is an option of the database, and not of a Proxy")
	p := &Proxy{client: client, schemas: schemas{client: client, byTable: map[string]schema{}}}
	p.start(p, true, s)
	return p
}

// Client returns a client of the SDK whose requests go through the proxy. It has the options of the
// client behind the proxy, including retries. Options change them, as with dynamodb.New.
func (p *Proxy) Client(options ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(p.client.Options(), append([]func(*dynamodb.Options){func(o *dynamodb.Options) {
		o.HTTPClient = proxyClient{p}
	}}, options...)...)
}

// proxyClient sends requests through a proxy.
type proxyClient struct{ *Proxy }

// Do serves a request, or passes it on if there is no fault or observer.
func (p proxyClient) Do(sent *http.Request) (*http.Response, error) {
	if p.closed.Load() {
		return nil, ErrClosed
	}
	behind := p.client.Options().HTTPClient
	if len(*p.injections.Load()) == 0 && len(*p.observers.Load()) == 0 {
		return behind.Do(sent)
	}
	r := request{sent: sent}
	var supported bool
	r.name, _ = nameOf(sent.Header)
	if r.op, supported = operations[r.name]; !supported {
		return behind.Do(sent)
	}
	reply, err := p.answer(r)
	if err == nil && p.closed.Load() {
		err = ErrClosed
	}
	if err != nil {
		return nil, err
	}
	return reply.response(sent), nil
}

// answer reads a request and serves it. It refuses a request that it cannot read, like a [DB],
// because no fault could happen to it.
func (p *Proxy) answer(r request) (answer, error) {
	var err error
	if r.body, err = readAll(r.sent); err != nil {
		return answer{}, err
	}
	r.in = r.op.input()
	if err := wire.Decode(r.body, r.in); err != nil {
		return p.refuseUnread(r, err), nil
	}
	return p.serve(r.sent.Context(), r)
}

func (p *Proxy) refuseUnread(r request, err error) answer {
	err = apierror.Validation("dynamotest: the proxy cannot read a %s, so no fault could happen to it: %v", r.name, err)
	reply := refused(err)
	p.observe(Call{Operation: r.name, RequestBytes: len(r.body), ReplyBytes: len(reply.body), Err: err})
	return reply
}

func (p *Proxy) touches(ctx context.Context, in any) (touches []engine.Touch, undescribed map[string]error) {
	if len(*p.injections.Load()) == 0 {
		// Recordings need no keys.
		return engine.Touches(in, func(string, value.Item) value.Item { return nil }), nil
	}
	undescribed = map[string]error{}
	touches = engine.Touches(in, func(table string, item value.Item) value.Item {
		if undescribed[table] != nil {
			return nil
		}
		described, err := p.schemas.of(ctx, table)
		if err != nil {
			undescribed[table] = err
		}
		return described.keyOf(item)
	})
	return touches, undescribed
}

func (p *Proxy) hasIndex(ctx context.Context, table, index string) (bool, error) {
	described, err := p.schemas.of(ctx, table)
	return described.indexes[index], err
}

func (p *Proxy) remember(time.Duration) {} // it does not support StaleReads

// perform sends a request and returns the reply. The plan may change both.
func (p *Proxy) perform(ctx context.Context, r request, by *plan, call *Call) (answer, error) {
	changed := by.limitPage(r.in)
	withheld := takeWithheld(r.in, by.withheld)
	if withheld != nil && isEmptyBatch(r.in) {
		out := r.op.output()
		withheld.putInto(out)
		return answer{status: http.StatusOK, body: wire.AppendTo(nil, out)}, nil
	}
	body := r.body
	if changed || withheld != nil {
		body = wire.AppendTo(nil, r.in)
	}
	response, err := p.send(ctx, r.sent, body, changed || withheld != nil)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	reply := answer{status: response.StatusCode, as: response.Header}
	if reply.body, err = io.ReadAll(response.Body); err != nil {
		return answer{}, fmt.Errorf("read the reply: %w", err)
	}
	p.schemas.learn(r.in)
	if reply.status != http.StatusOK {
		call.Err = wire.DecodeError(reply.body)
		return reply, nil
	}
	if withheld == nil && by.hidden == nil && len(*p.observers.Load()) == 0 {
		return reply, nil
	}
	out := r.op.output()
	if err := wire.Decode(reply.body, out); err != nil {
		return answer{}, fmt.Errorf("dynamotest: read the reply to a %s: %w", r.name, err)
	}
	call.read(r.in, out)
	if hidden := by.hide(out); withheld != nil || hidden {
		withheld.putInto(out)
		reply.replace(wire.AppendTo(nil, out))
	}
	return reply, nil
}

// send sends a request whose body may have changed since it was signed.
func (p *Proxy) send(ctx context.Context, sent *http.Request, body []byte, changed bool) (*http.Response, error) {
	again := sent.Clone(ctx)
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	o := p.client.Options()
	if changed && o.Credentials != nil {
		credentials, err := o.Credentials.Retrieve(ctx)
		if err != nil {
			return nil, fmt.Errorf("sign the request after a fault changed it: %w", err)
		}
		hash := sha256.Sum256(body)
		again.Header.Del("Authorization")
		if err := o.HTTPSignerV4.SignHTTP(ctx, credentials, again, hex.EncodeToString(hash[:]), "dynamodb", o.Region, time.Now()); err != nil {
			return nil, fmt.Errorf("sign the request after a fault changed it: %w", err)
		}
	}
	return o.HTTPClient.Do(again)
}

// replace replaces the body of a reply.
func (a *answer) replace(body []byte) {
	a.body, a.as = body, a.as.Clone()
	a.as.Set("Content-Length", strconv.Itoa(len(body)))
	a.as.Del("X-Amz-Crc32")
}
