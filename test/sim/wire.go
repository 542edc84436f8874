package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// wire is the way of one life of a process to the database. Requests take time on it, both ways, and get lost; while the
// process is stalled none sets off and no reply is read; when it is dead none gets through.
type wire struct {
	oracle *oracle
	member *member
	next   http.RoundTripper
	late   *sync.WaitGroup // requests that arrive after they were given up

	mu      sync.Mutex
	random  *rand.Rand
	quality quality
	stalled time.Time // until then
	dead    chan struct{}

	sabotage Sabotage
}

var (
	errCut  = fmt.Errorf("sim: cut before the request arrived: %w", io.ErrUnexpectedEOF)
	errLost = fmt.Errorf("sim: cut before the reply arrived: %w", io.ErrUnexpectedEOF)
	errDead = errors.New("sim: the process is dead")
)

// client gives a client whose requests go over the wire.
func (w *wire) client(to *dynamodb.Client) *dynamodb.Client {
	return dynamodb.New(to.Options(), func(o *dynamodb.Options) {
		w.next = o.HTTPClient.(*http.Client).Transport // the client itself has nothing to add
		o.HTTPClient = w
		o.DisableValidateResponseChecksum = true
		o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware, w.remember)
	})
}

type inputKey struct{}

// remember puts the input of a call that may write positions where Do finds it.
func (w *wire) remember(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("sim/remember",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
			middleware.InitializeOutput, middleware.Metadata, error,
		) {
			switch in.Parameters.(type) {
			case *dynamodb.UpdateItemInput, *dynamodb.TransactWriteItemsInput:
				in.Parameters = w.sabotage.spoil(in.Parameters)
				ctx = context.WithValue(ctx, inputKey{}, in.Parameters)
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.After)
}

// Do sends a request, or does not.
func (w *wire) Do(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	if w.isDead() { // nothing sets off any more
		return nil, errDead
	}
	draw := w.draw()
	w.oracle.count("calls of "+strings.TrimPrefix(request.Header.Get("X-Amz-Target"), "DynamoDB_20120810."), 1)
	if err := w.travel(ctx, draw.there); err != nil {
		if !errors.Is(err, errDead) || !draw.arrives {
			return nil, err
		}
		if response, err := w.arrive(request); err == nil {
			_ = response.Body.Close()
		}
		return nil, errDead
	}
	switch {
	case draw.cut:
		w.oracle.note("cut", w.member.name)
		return nil, errCut
	case draw.late > 0:
		if err := w.arriveLate(request, draw.late); err != nil {
			return nil, err
		}
		return nil, errCut
	}
	response, err := w.arrive(request)
	if err != nil {
		return nil, err
	}
	if draw.lost {
		w.oracle.note("lose", w.member.name)
		err = errLost
	} else {
		err = w.travel(ctx, draw.back)
	}
	if err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	for _, learn := range response.learn {
		learn()
	}
	return response.Response, nil
}

// reply is a response with what the member learns of it.
type reply struct {
	*http.Response
	learn []func()
}

// arrive hands a request to the database and tells the oracle what came of it. The client's patience ends on the wire, not
// in the database: what has arrived is done.
func (w *wire) arrive(request *http.Request) (reply, error) {
	response, err := w.next.RoundTrip(request.WithContext(context.WithoutCancel(request.Context()))) //nolint:bodyclose // the caller's
	if err != nil || response.StatusCode != http.StatusOK {
		return reply{Response: response}, err
	}
	in := request.Context().Value(inputKey{})
	out := reply{Response: response}
	transaction, isTransaction := in.(*dynamodb.TransactWriteItemsInput)
	// One that comes a second time is answered like the first, and does nothing.
	again := isTransaction && w.oracle.isRepeated(aws.ToString(transaction.ClientRequestToken))
	if change, ok := rosterChangeOf(in); ok && !again {
		w.oracle.enrol(w.member, change)
	}
	records := recordWrites(in)
	for _, r := range records {
		if !again {
			w.oracle.record(w.member, r.stream, r.number)
		}
	}
	for _, p := range positionWrites(in) {
		s := p.stream
		position := p.to
		switch {
		case p.claim:
			position = w.oracle.claim(w.member, s)
		case !again:
			if isTransaction && len(records) == 0 && !isHandling(in) {
				w.oracle.passOver(w.member, s, p.to)
			}
			w.oracle.store(w.member, s, p.to, !isTransaction)
		}
		out.learn = append(out.learn, func() { w.oracle.learn(w.member, s, position) })
	}
	return out, nil
}

// arriveLate lets a request arrive when its sender has heard that it did not.
func (w *wire) arriveLate(request *http.Request, by time.Duration) error {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return err
	}
	again := request.Clone(request.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	w.late.Add(1)
	go func() {
		defer w.late.Done()
		time.Sleep(by)
		w.oracle.note("late", w.member.name)
		if response, err := w.arrive(again); err == nil {
			_ = response.Body.Close()
		}
	}()
	return nil
}

// travel takes some time, and as long as the process is stalled.
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

// calm ends what goes wrong on the wire.
func (w *wire) calm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quality.cut, w.quality.lost, w.quality.late, w.quality.spikes = 0, 0, 0, 0
	w.stalled = time.Time{}
}

func isConditionFalse(err error) bool {
	var failed *types.ConditionalCheckFailedException
	return errors.As(err, &failed)
}
