package millrace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/subscriber"
)

// end is the end of something that ran, with its error.
type end struct {
	name string
	err  error
}

// run is one run of an App.
type run struct {
	*App
	ctx    context.Context // of the handlers and services; it outlives the context of Run
	cancel context.CancelFunc
	ends   chan end
	active map[string]int // number of running functions by name
	routed chan struct{}  // closed when the router has ended
	// cancels holds the cancel functions of the contexts of the services, by their index in
	// services.
	cancels map[int]context.CancelFunc
}

// Run runs the App until ctx ends, and then stops it. It returns nil if everything stopped in time.
// It returns an error if something could not start, ended before ctx, or did not stop in time. Call
// Run once.
//
// Errors: [ErrStarted], a [*ConfigError] for a group of [App.Consistent] that the App does not
// have, and the errors of subscriber.Subscriber.Subscribe, of the services, and of stopping.
func (a *App) Run(ctx context.Context) error {
	a.mu.Lock()
	if a.started {
		a.mu.Unlock()
		return ErrStarted
	}
	a.started = true
	a.mu.Unlock()
	r := &run{
		App: a, ends: make(chan end, 2+len(a.feeds)+len(a.workers)+len(a.services)), routed: make(chan struct{}),
		active: map[string]int{}, cancels: map[int]context.CancelFunc{},
	}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer close(a.stopped)
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

// Start runs the App in the background, and returns when everything has started, see
// [App.Running]. If the App cannot start, Start returns the error of [App.Run]. If ctx ends during
// the start, it returns the error of ctx.
//
// stop stops the App, waits for its end, and returns the error of Run. Further calls return the
// same error. The App also stops when ctx ends, or when anything that it runs ends; wait for that
// with [App.Stopped].
func (a *App) Start(ctx context.Context) (stop func() error, err error) {
	if err := a.checkNotStarted(); err != nil {
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

// start starts the handlers and, when all have subscribed, the workers and services.
func (r *run) start(ctx context.Context) error {
	r.mu.Lock()
	queried := r.queried // queries may still be added
	r.mu.Unlock()
	if err := r.hasGroups(queried...); err != nil {
		close(r.routed)
		return err
	}
	r.reportNoCommands()
	if r.receiver != nil {
		r.begin("wake-ups", func() error {
			r.receiver.Run(r.ctx)
			return nil
		})
	}
	r.begin("handlers", func() error {
		defer close(r.routed)
		return r.router.Run(r.ctx)
	})
	if err := r.wait(ctx, r.router.Running()); err != nil {
		return err
	}
	if err := r.join(ctx); err != nil {
		return err
	}
	for i, feed := range r.feeds {
		r.begin(fmt.Sprint("live feed ", i+1), func() error { return feed.Run(r.ctx) })
	}
	for _, feed := range r.feeds {
		if err := r.wait(ctx, feed.Running()); err != nil {
			return err
		}
	}
	for _, worker := range r.workers {
		r.begin(worker.Name, func() error { return worker.Run(r.ctx) })
	}
	for i, s := range r.services {
		running, cancel := context.WithCancel(r.ctx)
		r.cancels[i] = cancel
		r.begin(s.Name, func() error { return s.Run(running) })
	}
	return nil
}

// reportNoCommands reports that another program has to handle the commands of process managers.
func (a *App) reportNoCommands() {
	if a.sends && a.topicsOf[commandGroup] == nil {
		a.config.Logger.Info("The App handles no commands: the commands of its process managers wait for another program", watermill.LogFields{"topic": a.config.CommandTopic})
	}
}

// join waits until the handlers have joined their consumer groups, at most for [joinTimeout].
func (r *run) join(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		for _, sub := range r.subscribers {
			_ = sub.WaitJoined(limited) // it fails only if limited or the run has ended
		}
	}()
	err := r.wait(ctx, joined)
	if err == nil && limited.Err() != nil {
		r.config.Logger.Info("Not all consumer groups were joined in time; the handlers try again", watermill.LogFields{"timeout": joinTimeout})
	}
	cancel()
	<-joined
	return err
}

// joinTimeout is the time that the start waits for handlers to join their groups.
const joinTimeout = 30 * time.Second

func (r *run) begin(name string, run func() error) {
	r.active[name]++
	go func() { r.ends <- end{name, run()} }()
}

func (r *run) ended(e end) {
	if r.active[e.name]--; r.active[e.name] == 0 {
		delete(r.active, e.name)
	}
}

// wait waits until a channel is closed. It returns an error if ctx, or anything that the App runs,
// ends before.
func (r *run) wait(ctx context.Context, until <-chan struct{}) error {
	select {
	case <-until:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	case e := <-r.ends:
		r.ended(e)
		if e.err == nil {
			return fmt.Errorf("%s: has ended by itself", e.name)
		}
		return fmt.Errorf("%s: %w", e.name, e.err)
	}
}

// stop stops the services, then the handlers, the workers, the publisher and the sender of
// wake-ups.
func (r *run) stop() error {
	r.stopping.Store(true)
	deadline := time.Now().Add(r.config.StopTimeout)
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	errs := []error{r.stopFeeds(ctx), r.stopServices(ctx), r.stopHandlers(ctx), r.await(ctx)}
	if errs[2] != nil || errs[3] != nil {
		errs = append(errs, r.handling.stillRunning())
	}
	errs = append(errs, r.stopPublisher(deadline))
	r.stopSender(deadline)
	return errors.Join(errs...)
}

// stopPublisher waits for commits of the publishers. A call of Publish can outlast the handler or
// the process manager that made it. It has the rest of StopTimeout, but 5 seconds at least.
func (r *run) stopPublisher(deadline time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), max(5*time.Second, time.Until(deadline)))
	defer cancel()
	ends := make(chan error, 1+len(r.publishers))
	for _, p := range append(r.publishers, r.publisher) {
		go func() { ends <- p.Shutdown(ctx) }()
	}
	var errs []error
	for range cap(ends) {
		if err := <-ends; err != nil {
			errs = append(errs, fmt.Errorf("stop the publisher: %w", err))
		}
	}
	return errors.Join(errs...)
}

// stopFeeds ends the streams of live pages. Otherwise servers would wait for these.
func (r *run) stopFeeds(ctx context.Context) (err error) {
	ends := make(chan error, len(r.feeds))
	for _, feed := range r.feeds {
		go func() { ends <- feed.Close() }()
	}
	for range r.feeds {
		select {
		case closed := <-ends:
			err = errors.Join(err, closed)
		case <-ctx.Done():
			return errors.Join(err, fmt.Errorf("not stopped within %v: live feeds", r.config.StopTimeout))
		}
	}
	return err
}

// stopServices stops the services in the reverse order. It leaves time to stop the handlers.
func (r *run) stopServices(ctx context.Context) error {
	limit := max(r.config.StopTimeout/2, r.config.StopTimeout-r.config.HandlerTimeout-closing)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var errs []error
	for i, s := range slices.Backward(r.services) {
		if s.Stop != nil {
			if err := stopService(ctx, s); err != nil {
				errs = append(errs, fmt.Errorf("stop %s: %w", s.Name, err))
			}
		}
		if cancel := r.cancels[i]; cancel != nil {
			cancel()
		}
	}
	return errors.Join(errs...)
}

// grace is the time that Stop of a service has to return after its context has ended.
const grace = 100 * time.Millisecond

// stopService calls Stop of a service. It stops waiting when ctx has ended and grace has passed.
func stopService(ctx context.Context, s Service) error {
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(ctx) }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-stopped:
		return err
	case <-time.After(grace):
		return ctx.Err()
	}
}

// stopHandlers closes the router, and ends the contexts of workers and of services without a Stop.
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
		go func() {
			select {
			case <-r.router.Running(): // a router without handlers does not end with its context
				_ = r.router.Close()
			case <-r.routed:
			}
		}()
	}
	// The router has closed the subscribers whose handlers it has started.
	ends := make(chan error, len(r.subscribers))
	for _, sub := range r.subscribers {
		go func() { ends <- sub.Close() }()
	}
	for range r.subscribers {
		select {
		case closed := <-ends:
			err = errors.Join(err, closed)
		case <-ctx.Done(): // a group may have a longer CloseTimeout
			return errors.Join(err, fmt.Errorf("not stopped within %v: subscribers", r.config.StopTimeout))
		}
	}
	return err
}

// await waits until everything that runs has ended.
func (r *run) await(ctx context.Context) (err error) {
	for len(r.active) > 0 {
		select {
		case e := <-r.ends:
			r.ended(e)
			// A handler that subscribes during the stop finds its subscriber closed.
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
