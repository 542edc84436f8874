package soak

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// wire is a writer's way to the database: turns change on it, connections break, and the writer may crash while a
// request is on it.
type wire struct {
	next  dynamodb.HTTPClient
	turns *turns
	cut   float64 // the chance that a connection breaks, half of them after the request has had its effect

	late float64 // the chance that a transaction arrives when its client has given it up

	mu       sync.Mutex
	random   *rand.Rand
	underWay []late
	fuse     int // points that are left until the crash, if above 0
	crash    context.CancelFunc
}

// connect gives a client whose requests go over a wire of its own. Random numbers are the wire's alone.
func connect(client *dynamodb.Client, w *wire) *dynamodb.Client {
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		w.next = o.HTTPClient
		o.HTTPClient = w
		o.APIOptions = append(slices.Clone(o.APIOptions), (&stale{random: derive(w.random), seen: map[string]any{}}).add)
	})
}

// Do sends a request, or does not.
func (w *wire) Do(request *http.Request) (*http.Response, error) {
	if !w.turns.free {
		request = request.WithContext(unhurried(request.Context()))
	}
	w.point()
	if w.breaks() {
		return nil, fmt.Errorf("soak: cut before the request: %w", io.ErrUnexpectedEOF)
	}
	if w.delays(request) {
		return nil, w.delay(request)
	}
	response, err := w.next.Do(request)
	w.point()
	if err == nil && w.breaks() {
		_ = response.Body.Close()
		return nil, fmt.Errorf("soak: cut before the reply: %w", io.ErrUnexpectedEOF)
	}
	if gone := request.Context().Err(); err == nil && gone != nil {
		_ = response.Body.Close()
		return nil, gone
	}
	return response, err
}

// lifeKey is the key of the context of a writer's life in all contexts that come from it.
type lifeKey struct{}

// unhurried is a request's context without deadlines, which would depend on how long others have their turns. It ends
// with the writer's life.
func unhurried(ctx context.Context) context.Context {
	if life, ok := ctx.Value(lifeKey{}).(context.Context); ok {
		return life
	}
	return context.WithoutCancel(ctx)
}

// point is a moment between two things that happen: the writer may crash, others have their turn.
func (w *wire) point() {
	w.burn()
	w.arrive(false)
	w.turns.yield()
}

// burn brings the crash nearer, if there is to be one.
func (w *wire) burn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fuse > 0 {
		if w.fuse--; w.fuse == 0 {
			w.crash()
		}
	}
}

func (w *wire) breaks() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut > 0 && w.random.Float64() < w.cut/2
}

// light makes the writer crash some points from now.
func (w *wire) light(points int, crash context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fuse, w.crash = points, crash
}

// calm ends all that goes wrong, when whatever was under way has arrived.
func (w *wire) calm() {
	w.arrive(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut, w.fuse = 0, 0
}
