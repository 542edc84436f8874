package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/test/draw"
)

// wire is the connection of one life of a process to the database. Requests take time in both
// directions. While the process is stalled, no request is sent and no reply is read. When it is
// dead, no request gets through. Between the two ends is a proxy on which connections break and
// requests are late.
type wire struct {
	oracle *oracle
	member *member
	proxy  *dynamotest.Proxy
	faults draw.FaultMix
	send   dynamodb.HTTPClient // into the proxy
	next   http.RoundTripper   // after the proxy

	mu      sync.Mutex
	random  *rand.Rand
	quality quality
	stalled time.Time // until that time
	dead    chan struct{}

	suspension *suspension     // the next one; nil for none
	suspended  time.Time       // until that time
	terms      map[string]bool // in which the process has written

	// Maximum delay of requests to remove an item, 0 for none.
	removals   time.Duration
	stragglers *stragglers // nil for none
	sabotage   Sabotage
	trailing   time.Duration // of the trailing reads on the wire
	inBursts   bool          // the process works in bursts
	untracked  bool          // the oracle does not follow the requests
	// Positions that the process knows, by their keys.
	known map[string]string
}

var errDead = errors.New("sim: the process is dead")

// client returns a client whose requests go over the wire.
func (w *wire) client(to *dynamodb.Client) *dynamodb.Client {
	w.proxy = dynamotest.OpenProxy(dynamodb.New(to.Options(), func(o *dynamodb.Options) {
		// The client itself adds nothing.
		w.next = o.HTTPClient.(*http.Client).Transport
		o.HTTPClient = farEnd{w}
	}))
	w.faults.InjectNetwork(w.random, w.proxy, w.quality.network)
	if w.removals > 0 {
		w.faults.InjectNetwork(w.random, w.proxy, draw.Network{Late: 0.3, LateBy: w.removals, LateOperations: []string{"DeleteItem"}})
	}
	return w.proxy.Client(func(o *dynamodb.Options) {
		w.send, o.HTTPClient = o.HTTPClient, w
		o.DisableValidateResponseChecksum = true
		o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware, w.remember)
	})
}

type inputKey struct{}

// remember stores the input of a call for Do.
func (w *wire) remember(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("sim/remember",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
			middleware.InitializeOutput, middleware.Metadata, error,
		) {
			switch in.Parameters.(type) {
			case *dynamodb.UpdateItemInput, *dynamodb.DeleteItemInput, *dynamodb.TransactWriteItemsInput,
				*dynamodb.GetItemInput, *dynamodb.BatchGetItemInput, *dynamodb.QueryInput:
				in.Parameters = w.spoil(in.Parameters)
				ctx = context.WithValue(ctx, inputKey{}, in.Parameters)
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.After)
}

type exchangeKey struct{}

// targetHeader names the operation of a request.
const targetHeader = "X-Amz-Target"

// exchange is a request and its reply. They belong to the sender until it has the result.
type exchange struct {
	target string   // the operation
	member *member  // the sender
	learn  []func() // what the sender learns from the reply
	over   bool     // the sender has continued
}

// Do sends a request over the wire, unless a fault prevents that. It returns an error if the
// request or its reply is lost.
func (w *wire) Do(request *http.Request) (*http.Response, error) {
	if w.isDead() { // nothing is sent any more
		return nil, errDead
	}
	ctx := request.Context()
	e := &exchange{target: request.Header.Get(targetHeader), member: w.member}
	defer func() { e.over = true }()
	request = request.WithContext(context.WithValue(ctx, exchangeKey{}, e))
	trip := w.draw()
	w.oracle.count("calls of "+strings.TrimPrefix(e.target, "DynamoDB_20120810."), 1)
	setOff := w.travel
	if w.meet(ctx.Value(inputKey{})) {
		setOff = w.wait
	}
	if err := setOff(ctx, trip.there); err != nil {
		if w.isSuspended() && isCheckpoint(ctx.Value(inputKey{})) {
			go w.sendLater(request)()
		}
		if !errors.Is(err, errDead) || !trip.arrives {
			return nil, err
		}
		if response, err := w.arrive(request); err == nil {
			_ = response.Body.Close()
		}
		return nil, errDead
	}
	if w.holdBack(ctx.Value(inputKey{}), request) {
		return nil, io.ErrUnexpectedEOF
	}
	response, err := w.send.Do(request)
	if err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			w.oracle.note("cut", w.member.name)
		}
		return nil, err
	}
	if err := w.travel(ctx, trip.back); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	for _, learn := range e.learn {
		learn()
	}
	return response, nil
}

// farEnd is the end of a wire at the database.
type farEnd struct{ *wire }

// Do passes on a request that has come through. Requests that the proxy makes itself do not concern
// the oracle, though they may have the context of the original request.
func (w farEnd) Do(request *http.Request) (*http.Response, error) {
	e, _ := request.Context().Value(exchangeKey{}).(*exchange)
	if e == nil || e.target != request.Header.Get(targetHeader) {
		return w.next.RoundTrip(request)
	}
	return w.arrive(request)
}

// arrive passes a request to the database and reports the result to the oracle. A timeout of the
// client ends the request on the wire, not in the database: a request that has arrived is executed.
func (w *wire) arrive(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	e := ctx.Value(exchangeKey{}).(*exchange) //nolint:forcetypeassert // of Do
	if e.over {
		w.oracle.note("late", e.member.name)
	}
	response, err := w.next.RoundTrip(request.WithContext(context.WithoutCancel(ctx)))
	if err != nil || response.StatusCode != http.StatusOK || w.untracked {
		return response, err
	}
	in := ctx.Value(inputKey{})
	w.noteListed(in)
	transaction, isTransaction := in.(*dynamodb.TransactWriteItemsInput)
	// A repeated transaction has the same reply as the first, and no effect.
	again := isTransaction && w.oracle.isRepeated(aws.ToString(transaction.ClientRequestToken))
	if change, ok := membershipChangeOf(in); ok && !again {
		w.oracle.enrol(e.member, change)
	}
	records := recordWrites(in)
	for _, r := range records {
		if !again {
			w.oracle.record(e.member, r.stream, r.number)
		}
	}
	for _, p := range positionWrites(in) {
		s := p.stream
		if p.put && len(records) == 0 {
			if !again {
				w.oracle.sendBack(e.member, p)
			}
			continue
		}
		position := p.to
		switch {
		case p.claim:
			position = w.oracle.claim(e.member, p)
		case !again:
			switch {
			case isHandling(in):
				w.oracle.effect(e.member, s, p.to)
			case isTransaction && len(records) == 0:
				w.oracle.passOver(e.member, s, p.to)
			}
			w.oracle.store(e.member, p, !isTransaction)
			w.noteKnown(in)
		}
		resets := w.oracle.resetsOf(s)
		e.learn = append(e.learn, func() { w.oracle.learn(e.member, s, position, resets) })
	}
	if isPositionRead(in) && e.member.group != "" {
		if err := w.reads(e, response); err != nil {
			return nil, err
		}
	}
	return response, w.spoilReply(in, response)
}

// reads reports to the oracle the positions that a member has read.
func (w *wire) reads(e *exchange, response *http.Response) error {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	for _, p := range positionReads(body) {
		position, resets := w.oracle.read(e.member, p), w.oracle.resetsOf(p.stream)
		e.learn = append(e.learn, func() { w.oracle.learn(e.member, p.stream, position, resets) })
	}
	return nil
}

// travel takes some time, and also waits while the process is stalled.
func (w *wire) travel(ctx context.Context, d time.Duration) error {
	if err := w.wait(ctx, d); err != nil {
		return err
	}
	return w.gate(ctx)
}

// gate waits while the process is stalled.
func (w *wire) gate(ctx context.Context) error {
	for {
		w.mu.Lock()
		left := time.Until(w.stalled)
		w.mu.Unlock()
		if left <= 0 {
			return nil
		}
		if err := w.wait(ctx, left); err != nil {
			return err
		}
	}
}

func (w *wire) wait(ctx context.Context, d time.Duration) error {
	if w.isDead() {
		return errDead
	}
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-w.dead:
		return errDead
	}
}

func (w *wire) stall(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stalled = time.Now().Add(d)
}

func (w *wire) isDead() bool {
	select {
	case <-w.dead:
		return true
	default:
		return false
	}
}

// calm ends the faults of the wire, after the late requests have arrived.
func (w *wire) calm() {
	w.faults.End()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quality.spikes = 0
	w.stalled, w.suspended, w.suspension = time.Time{}, time.Time{}, nil
}

// wires holds all wires so far.
type wires struct {
	mu  sync.Mutex
	all []*wire
}

func (w *wires) add(one *wire) *wire {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, one)
	return one
}

func (w *wires) each(do func(*wire)) {
	w.mu.Lock()
	all := slices.Clone(w.all)
	w.mu.Unlock()
	for _, one := range all {
		do(one)
	}
}

// arrive lets the late requests arrive.
func (w *wires) arrive() {
	w.each(func(one *wire) {
		one.faults.Arrive()
		one.stragglers.end()
	})
}

func (w *wires) close() { w.each(func(one *wire) { one.proxy.Close() }) }

func isConditionFalse(err error) bool {
	var failed *types.ConditionalCheckFailedException
	return errors.As(err, &failed)
}
