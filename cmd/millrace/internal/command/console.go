package command

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/process"
)

// consoleLine reports the address of the console.
type consoleLine struct {
	Kind string `json:"kind"` // "console"
	URL  string `json:"url"`
}

type consoleOptions struct {
	listen                string
	allowActions, payload bool
	topics                []string
	units                 float64
}

func (a *app) console() *cobra.Command {
	var o consoleOptions
	cmd := &cobra.Command{
		Use:   "console [flags]",
		Short: "Serve web pages of the journal, groups, read models and process managers on this machine",
		Long: `Serve web pages for operators on the loopback interface until interrupted, and print their address.
The address contains a key, which is new at each start, so that other users of the machine cannot
open the pages.

The pages show topics, aggregates with their events, a live tail, consumer groups with their blocked
aggregates, read models and process managers. They only read, unless --allow-actions is set. They
show the latest snapshot of an aggregate, if it is JSON or text, but no other states, since the
command does not have the definitions of aggregates. A console that an application serves shows
states.

Each page shows how many read units it took, and leaves out the rest after --page-units. No page
scans a table unless you request it.`,
		Example: "  millrace console\n  millrace console --prefix shop- --topic order --allow-actions\n  millrace console --endpoint http://127.0.0.1:8000 --listen 127.0.0.1:8787",
		Args:    wants(),
		RunE: a.does(func(cmd *cobra.Command, _ []string) error {
			host, _, err := net.SplitHostPort(o.listen)
			if err != nil || !net.ParseIP(host).IsLoopback() {
				return wrongUsage("--listen is %q: want a loopback address with a port, such as 127.0.0.1:8787. To serve other addresses, use package console behind your authentication", o.listen)
			}
			if o.units <= 0 {
				return wrongUsage("--page-units is %v: want more than 0", o.units)
			}
			return a.runConsole(cmd.Context(), o)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "loopback `address` to listen on; port 0 means a free port")
	flags.BoolVar(&o.allowActions, "allow-actions", false, "allow actions, such as to pause a group")
	flags.BoolVar(&o.payload, "payload", true, "show payloads, metadata and snapshots")
	flags.StringSliceVar(&o.topics, "topic", nil, "`topic` to list even if no consumer group reads it; can be repeated")
	flags.Float64Var(&o.units, "page-units", 500, "`number` of read units after which a page leaves out the rest")
	return cmd
}

// stopTimeout is the time that the shutdown waits for requests.
const stopTimeout = 5 * time.Second

func (a *app) runConsole(ctx context.Context, o consoleOptions) error {
	j, err := a.open(ctx)
	if err != nil {
		return err
	}
	c, err := console.New(console.Config{
		Journal: j, Backlog: process.NewBacklog(j.Client(), a.tables.process), ReadModelTable: a.tables.model, Topics: o.topics,
		AllowActions: o.allowActions, Authorize: func(*http.Request, console.Action) (string, error) { return "millrace console", nil },
		HidePayloads: !o.payload, PageUnits: o.units, Logger: logger{a},
	})
	if err != nil {
		return err
	}
	defer c.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("%w: choose another address with --listen", err)
	}
	key := rand.Text()
	server := &http.Server{Handler: keyed(key, listener.Addr(), c), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	server.RegisterOnShutdown(c.Close)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	url := "http://" + listener.Addr().String() + "/?key=" + key
	if err := a.line(consoleLine{Kind: "console", URL: url}, output.Field{Name: "console", Value: url}); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done(): // interrupted, the usual end
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if server.Shutdown(stopping) != nil {
		return server.Close()
	}
	return nil
}

// keyed serves requests that have the key. The printed address sets a cookie with the key. Browsers
// send cookies to all ports of a host, so the name of the cookie contains the port.
func keyed(key string, at net.Addr, next http.Handler) http.Handler {
	name := "millrace_key"
	if tcp, ok := at.(*net.TCPAddr); ok {
		name = fmt.Sprintf("%s_%d", name, tcp.Port)
	}
	is := func(given string) bool { return subtle.ConstantTimeCompare([]byte(given), []byte(key)) == 1 }
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie(name)
		bearer, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case isBearer && is(bearer): // a script
			next.ServeHTTP(w, r)
		case r.URL.Path == "/" && is(r.URL.Query().Get("key")):
			http.SetCookie(w, &http.Cookie{Name: name, Value: key, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			w.Header().Set("Referrer-Policy", "no-referrer")
			http.Redirect(w, r, "/", http.StatusSeeOther)
		case err == nil && is(cookie.Value):
			next.ServeHTTP(w, r)
		default:
			http.Error(w, "Open the address that millrace console has printed. It contains the key.", http.StatusUnauthorized)
		}
	})
}

// logger prints the log lines of the console: actions and failures.
type logger struct{ app *app }

func (l logger) Error(msg string, err error, fields watermill.LogFields) {
	l.app.note("millrace: %s: %s%s", msg, l.app.explain(context.Background(), err), logged(fields))
}

func (l logger) Info(msg string, fields watermill.LogFields) { l.app.note("%s%s", msg, logged(fields)) }

func (logger) Debug(string, watermill.LogFields) {}
func (logger) Trace(string, watermill.LogFields) {}

func (l logger) With(watermill.LogFields) watermill.LoggerAdapter { return l }

func logged(fields watermill.LogFields) string {
	texts := map[string]string{}
	for name, value := range fields {
		texts[name] = printable.Text(fmt.Sprint(value))
	}
	if len(texts) == 0 {
		return ""
	}
	return " " + strings.TrimSpace(output.Metadata(texts))
}
