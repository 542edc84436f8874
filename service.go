package millrace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
)

// Service is something that runs in addition to the handlers, such as a server.
type Service struct {
	// Name is the name of the service in errors. It must be unique in an App.
	Name string
	// Run runs until Stop is called, or until its context ends if Stop is nil. If Run returns
	// earlier, the App stops with the error of Run.
	Run func(ctx context.Context) error
	// Stop ends Run. The App calls it once, also if the App stops before it has called Run. If Stop
	// has not returned when its context ends, the App stops the next service. Default: the App
	// cancels the context of Run.
	Stop func(ctx context.Context) error
}

// Add adds a service. Errors: [*ConfigError], [ErrStarted].
func (a *App) Add(s Service) error {
	if s.Run == nil {
		return &ConfigError{"Service.Run", fmt.Sprintf("of %q is nil; pass a function that runs until it is stopped", s.Name)}
	}
	if slices.ContainsFunc(a.services, func(other Service) bool { return other.Name == s.Name }) {
		return &ConfigError{"Service.Name", fmt.Sprintf("%q is the name of another service; choose another name", s.Name)}
	}
	if err := a.checkNotStarted(); err != nil {
		return err
	}
	a.services = append(a.services, s)
	return nil
}

// Serve adds an HTTP server that serves a listener. When the App stops, the server takes no new
// requests. It waits for requests in progress as long as [Config].StopTimeout allows, and then
// closes their connections. Use http.Server.RegisterOnShutdown to end long streams, except those of
// [App.Live], which end before. Errors: [*ConfigError], [ErrStarted].
func (a *App) Serve(listener net.Listener, server *http.Server) error {
	if listener == nil || server == nil {
		return &ConfigError{"Serve", "needs a listener and a server"}
	}
	return a.Add(Service{
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
				err = errors.Join(err, server.Close()) // closes the connections that are left
			}
			if closeErr := listener.Close(); closeErr != nil && !errors.Is(closeErr, net.ErrClosed) {
				err = errors.Join(err, closeErr) // the server never served it
			}
			return err
		},
	})
}
