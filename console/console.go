package console

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// Console serves the pages. It is an http.Handler, and safe for concurrent use. It makes requests
// to the database only while it handles requests, and while live tails are open.
type Console struct {
	config Config
	guard  guard
	seal   sealer
	shared shared
	rates  rates
	tails  *tails
}

// New returns a console. It makes no requests. Mount it under any path that ends with a slash,
// with or without http.StripPrefix. The last folder of a path that is not stripped cannot be named
// api or static.
//
// Errors: [*ConfigError].
func New(config Config) (*Console, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	seal := newSealer(config.Secret)
	c := &Console{config: config, guard: guard{config.Hosts, seal}, seal: seal}
	c.tails = newTails(config)
	return c, nil
}

// Close ends the live tails and waits for their reads. Later requests for a live tail are refused,
// and other pages still work. Call it when the server shuts down, by
// http.Server.RegisterOnShutdown: otherwise the shutdown waits for the live tails.
func (c *Console) Close() { c.tails.close() }

// longest limits the duration of a request, except for live tails.
const longest = time.Minute

// ServeHTTP replies to a request. It uses only the last parts of the path, so it works behind any
// prefix.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	folder, name := place(r.URL.Path)
	if err := c.guard.host(r); err != nil {
		c.fail(w, r, folder, err)
		return
	}
	// http.StripPrefix may leave an empty path.
	if path := requestPath(r); r.URL.Path == "" && !strings.HasSuffix(path, "/") {
		_, last := cutLast(path)
		seeOther(w, "./"+last+"/")
		return
	}
	if name == "action" && folder == "" {
		c.serveAction(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "This page can only be read.", http.StatusMethodNotAllowed)
		return
	}
	switch page, known := pages[name]; {
	case folder == "static":
		serveAsset(w, r, name)
	case name == "stream" && folder == "" && r.Method == http.MethodGet:
		c.serveTail(w, r)
	case !known:
		c.fail(w, r, folder, &missingError{"There is no such page."})
	case folder == "api":
		c.serveJSON(w, r, page)
	default:
		c.serveHTML(w, r, page)
	}
}

// requestPath returns the path that the client has sent.
func requestPath(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	return path
}

// place returns the last part of a path, and the part before it if that is api or static.
func place(path string) (folder, name string) {
	rest, name := cutLast(path)
	if _, folder = cutLast(rest); folder != "api" && folder != "static" {
		folder = ""
	}
	return folder, name
}

func cutLast(path string) (before, last string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// repositories returns the repositories by aggregate type. It reads them each time, since they can
// be added to an App after the call of New.
func (c *Console) repositories() map[string]repository.AnyRepository {
	byType := map[string]repository.AnyRepository{}
	if c.config.App != nil {
		for _, component := range c.config.App.Components() {
			if r, ok := component.(repository.AnyRepository); ok {
				byType[r.Type()] = r
			}
		}
	}
	for _, r := range c.config.Repositories {
		byType[r.Type()] = r
	}
	return byType
}

// now returns the time of the clock that dates events.
func (c *Console) now() time.Time { return c.config.Journal.Config().Now() }

// read loads a page, or returns a page that was just read for another visitor.
func (c *Console) read(ctx context.Context, r *http.Request, p page) result {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	load := func(ctx context.Context) result {
		ctx, units := journal.CountUnits(ctx)
		reading := &reading{Console: c, query: r.URL.Query(), units: units, now: c.now()}
		view, err := p.safely(ctx, reading)
		return result{view: view, err: err, at: shownTime(reading.now), units: units.Read(), requests: units.Requests()}
	}
	if !p.shared || c.config.Refresh < 0 {
		return load(ctx)
	}
	return c.shared.read(ctx, back(p.name, r.URL.Query()), c.config.Refresh/2, load)
}

func (c *Console) logError(r *http.Request, err error) {
	c.config.Logger.Error("Console cannot show a page", err, watermill.LogFields{"page": logText(r.URL.Path)})
}
