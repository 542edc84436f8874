package soak

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/test/draw"
)

// wire is the connection of a writer to the database. Turns change on it, connections break,
// requests arrive after the writer has cancelled them, and the writer may crash during a request.
type wire struct {
	proxy  dynamodb.HTTPClient
	turns  *turns
	faults draw.FaultMix
	// With turns, concurrent requests go one after the other.
	alone sync.Mutex
	// direct is the database without the faults of the network.
	direct dynamodb.HTTPClient

	mu     sync.Mutex
	random *rand.Rand
	// Points until the crash, if above 0.
	fuse  int
	crash context.CancelFunc
}

// connect returns a client whose requests go over the wire. The wire has its own random numbers.
func (w *wire) connect(client *dynamodb.Client, network draw.Network) *dynamodb.Client {
	proxy := dynamotest.OpenProxy(client)
	w.direct = client.Options().HTTPClient
	w.faults.InjectNetwork(w.random, proxy, network)
	return proxy.Client(func(o *dynamodb.Options) {
		w.proxy, o.HTTPClient = o.HTTPClient, w
		o.APIOptions = append(slices.Clone(o.APIOptions), w.unhurry)
	})
}

// Do sends a request, or does not.
func (w *wire) Do(request *http.Request) (*http.Response, error) {
	if !w.turns.free.Load() {
		if request.Context().Value(besideKey{}) != nil {
			return w.direct.Do(request)
		}
		w.alone.Lock()
		defer w.alone.Unlock()
	}
	w.point()
	response, err := w.proxy.Do(request)
	w.point()
	if gone := request.Context().Err(); err == nil && gone != nil {
		_ = response.Body.Close()
		return nil, gone
	}
	return response, err
}

// lifeKey is the key of the context of a writer's life in all contexts derived from it.
type lifeKey struct{}

// besideKey is the key of a mark in contexts: the request is made in the background. It takes no
// turns, and no fault affects it.
type besideKey struct{}

// isBeside reports whether a request reads the descriptor to learn of changes to the tables.
func isBeside(ctx context.Context, request any) bool {
	return ctx.Value(lifeKey{}) != nil && readsDescriptor(request) // nil while a journal is opened
}

func readsDescriptor(request any) bool {
	get, ok := request.(*dynamodb.GetItemInput)
	if !ok {
		return false
	}
	for _, value := range get.Key {
		if text, ok := value.(*types.AttributeValueMemberS); ok && text.Value == "millrace" {
			return true
		}
	}
	return false
}

// unhurry removes the deadline of operations with turns. Otherwise the number of the SDK's attempts
// would depend on the speed of the machine.
func (w *wire) unhurry(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("SoakUnhurry", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		if !w.turns.free.Load() {
			beside := isBeside(ctx, in.Parameters)
			if ctx = unhurried(ctx); beside {
				ctx = context.WithValue(ctx, besideKey{}, true)
			}
		}
		return next.HandleInitialize(ctx, in)
	}), middleware.Before)
}

// unhurried returns the context of an operation without its deadline, which would depend on the
// length of other strands' turns. It ends with the writer's life.
func unhurried(ctx context.Context) context.Context {
	if life, ok := ctx.Value(lifeKey{}).(context.Context); ok {
		return life
	}
	return context.WithoutCancel(ctx)
}

// point is called between two actions: the writer may crash, late requests arrive, and other
// strands have their turns.
func (w *wire) point() {
	w.burn()
	if w.draws(1.0 / 20) {
		w.faults.Arrive()
	}
	w.turns.yield()
}

func (w *wire) draws(probability float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.Float64() < probability
}

// burn brings a planned crash nearer.
func (w *wire) burn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fuse > 0 {
		if w.fuse--; w.fuse == 0 {
			w.crash()
		}
	}
}

// light makes the writer crash after a number of points.
func (w *wire) light(points int, crash context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fuse, w.crash = points, crash
}

// calm ends the faults, when all late requests have arrived.
func (w *wire) calm() {
	w.faults.End()
	w.light(0, nil)
}
