package millrace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/millrace-dev/millrace/subscriber"
)

// Part is something that runs beside the handlers, such as a server.
type Part struct {
	// Name is for errors and logs.
	Name string
	// Run runs until Stop is called, or until its context ends if there is no Stop. If it returns
	// earlier, the App stops, with its error.
	Run func(ctx context.Context) error
	// Stop ends Run. It is called once, also where the App stops before Run was called. It should
	// heed its context, which ends with [Config].StopTimeout. Default: the context of Run is ended.
	Stop func(ctx context.Context) error
}

// Add adds a part. Errors: [*ConfigError], [ErrStarted].
func (a *App) Add(p Part) error {
	if p.Run == nil {
		return &ConfigError{"Part.Run", fmt.Sprintf("of %q is nil; pass a function that runs until it is stopped", p.Name)}
	}
	if err := a.mayAdd(); err != nil {
		return err
	}
	a.parts = append(a.parts, p)
	return nil
}

// Serve adds an HTTP server, which listens already. The App stops it gracefully: requests have until
// [Config].StopTimeout. Streams that do not end by themselves are to end by
// http.Server.RegisterOnShutdown. Errors: [*ConfigError], [ErrStarted].
func (a *App) Serve(listener net.Listener, server *http.Server) error {
	if listener == nil || server == nil {
		return &ConfigError{"Serve", "needs a listener and a server"}
	}
	return a.Add(Part{
		Name: "HTTP server on " + listener.Addr().String(),
		Run: func(context.Context) error {
			err := server.Serve(listener)
			if errors.Is(err, http.ErrServerClosed) {
				return nil
			}
			return err
		},
		Stop: func(ctx context.Context) error {
			err := server.Shutdown(ctx)
			if err != nil {
				err = errors.Join(err, server.Close()) // cuts off what is left
			}
			if closeErr := listener.Close(); closeErr != nil && !errors.Is(closeErr, net.ErrClosed) {
				err = errors.Join(err, closeErr) // it never served
			}
			return err
		},
	})
}

// end is how a part has ended.
type end struct {
	name string
	err  error
}

// run is one run of an App.
type run struct {
	*App
	ctx    context.Context // of the handlers and parts; it outlives that of Run
	cancel context.CancelFunc
	ends   chan end
	active map[string]bool // the parts that run
	// cancels end the contexts of the parts, by their places in parts.
	cancels map[int]context.CancelFunc
}

// Run runs the App until ctx ends, and stops it. It returns nil if ctx ended and everything stopped
// in time. It returns an error if a part could not start, or ended before. It is called once.
//
// Errors: [ErrStarted], those of subscriber.Subscriber.Subscribe, of the parts, and of stopping.
func (a *App) Run(ctx context.Context) error {
	a.mu.Lock()
	if a.started {
		a.mu.Unlock()
		return ErrStarted
	}
	a.started = true
	a.mu.Unlock()
	r := &run{App: a, ends: make(chan end, 1+len(a.workers)+len(a.parts)), active: map[string]bool{}, cancels: map[int]context.CancelFunc{}}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer r.cancel()
	err := r.start(ctx)
	if err == nil {
		close(a.running)
		err = r.wait(ctx, nil)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return errors.Join(err, r.stop())
}

// Start runs the App in the background, and returns once all has started. If the App cannot start,
// it returns the error of [App.Run], or that of ctx if it ended before. stop ends the run, waits for
// it, and returns the error of Run, each time that it is called. The end of ctx ends the run as well.
func (a *App) Start(ctx context.Context) (stop func() error, err error) {
	if err := a.mayAdd(); err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- a.Run(running) }()
	select {
	case <-a.running:
		return sync.OnceValue(func() error {
			cancel()
			return <-ended
		}), nil
	case err := <-ended:
		cancel()
		if err == nil {
			err = ctx.Err()
		}
		return nil, err
	}
}

// start starts the handlers, and when all have subscribed, the rest.
func (r *run) start(ctx context.Context) error {
	r.begin("handlers", func() error { return r.router.Run(r.ctx) })
	if err := r.wait(ctx, r.router.Running()); err != nil {
		return err
	}
	for _, worker := range r.workers {
		r.begin(worker.Name, func() error { return worker.Run(r.ctx) })
	}
	for i, p := range r.parts {
		running, cancel := context.WithCancel(r.ctx)
		r.cancels[i] = cancel
		r.begin(p.Name, func() error { return p.Run(running) })
	}
	return nil
}

func (r *run) begin(name string, run func() error) {
	for r.active[name] {
		name += "'"
	}
	r.active[name] = true
	go func() { r.ends <- end{name, run()} }()
}

// wait waits until a channel is closed. Before that, the end of ctx and that of a part are errors.
func (r *run) wait(ctx context.Context, until <-chan struct{}) error {
	select {
	case <-until:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case e := <-r.ends:
		delete(r.active, e.name)
		if e.err == nil {
			return fmt.Errorf("%s: has ended by itself", e.name)
		}
		return fmt.Errorf("%s: %w", e.name, e.err)
	}
}

// stop stops the parts, then the process managers and the handlers, and then the publisher.
func (r *run) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), r.config.StopTimeout)
	defer cancel()
	var errs []error
	for i, p := range slices.Backward(r.parts) {
		if p.Stop != nil {
			if err := p.Stop(ctx); err != nil {
				errs = append(errs, fmt.Errorf("stop %s: %w", p.Name, err))
			}
		}
		if cancel := r.cancels[i]; cancel != nil {
			cancel()
		}
	}
	errs = append(errs, r.stopHandlers(ctx), r.await(ctx), r.publisher.Close())
	return errors.Join(errs...)
}

// stopHandlers ends the router, and the contexts of all that has no Stop.
func (r *run) stopHandlers(ctx context.Context) (err error) {
	select {
	case <-r.router.Running():
		closed := make(chan error, 1)
		go func() { closed <- r.router.Close() }()
		select {
		case err = <-closed:
		case <-ctx.Done():
		}
		r.cancel()
	default:
		r.cancel() // a router that does not run yet cannot be closed
	}
	for _, sub := range r.subscribers { // those whose handlers did not start
		err = errors.Join(err, sub.Close())
	}
	return err
}

// await waits until all that runs has ended.
func (r *run) await(ctx context.Context) (err error) {
	for len(r.active) > 0 {
		select {
		case e := <-r.ends:
			delete(r.active, e.name)
			// Handlers that were about to subscribe find the subscriber closed.
			if e.err != nil && !errors.Is(e.err, context.Canceled) && !errors.Is(e.err, subscriber.ErrSubscriberClosed) {
				err = errors.Join(err, fmt.Errorf("%s: %w", e.name, e.err))
			}
		case <-ctx.Done():
			var names []string
			for name := range r.active {
				names = append(names, name)
			}
			slices.Sort(names)
			return errors.Join(err, fmt.Errorf("not stopped within %v: %s", r.config.StopTimeout, strings.Join(names, ", ")))
		}
	}
	return err
}
