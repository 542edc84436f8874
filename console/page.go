package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// page is a query, and the template for its result.
type page struct {
	name, template string
	load           func(r *reading, ctx context.Context) (any, error)
	// shared reports that all visitors see the same page, so that one read serves several of them.
	shared bool
	// refreshes reports that the page refreshes itself.
	refreshes bool
}

// safely loads the page, and returns a panic of the application's code as an error. A shared read
// runs in its own goroutine, where a panic would end the process.
func (p page) safely(ctx context.Context, r *reading) (view any, err error) {
	defer func() {
		if v := recover(); v != nil {
			view, err = nil, fmt.Errorf("panic: %v", v)
		}
	}()
	return p.load(r, ctx)
}

// reading is one load of a page.
type reading struct {
	*Console
	query url.Values
	units *journal.Units
	now   time.Time
}

// result is a page that was read.
type result struct {
	view     any
	err      error
	at       time.Time
	units    float64
	requests int
}

// spent reports that the page has reached its limit of read units.
func (r *reading) spent() bool { return r.units.Read() >= r.config.PageUnits }

// limited returns a context whose requests fail with journal.ErrUnitLimit when the page has reached
// its limit of read units. It is for reads that may take long before they yield anything.
func (r *reading) limited(ctx context.Context) context.Context {
	ctx, units := journal.CountUnits(ctx)
	units.LimitRead(max(r.config.PageUnits-r.units.Read(), math.SmallestNonzeroFloat64))
	return ctx
}

// need returns a required parameter.
func (r *reading) need(name string) (string, error) {
	if value := r.query.Get(name); value != "" {
		return value, nil
	}
	return "", &requestError{"The parameter " + name + " is missing."}
}

// number returns a numeric parameter, 0 if it is missing.
func (r *reading) number(name string) (uint64, error) {
	text := r.query.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, &requestError{"The parameter " + name + " is " + strconv.Quote(text) + ": enter a number."}
	}
	return n, nil
}

// aggregate returns the aggregate that the parameters type and id name.
func (r *reading) aggregate() (aggregate.ID, error) {
	aggregateType, err := r.need("type")
	if err != nil {
		return aggregate.ID{}, err
	}
	value, err := r.need("id")
	if err != nil {
		return aggregate.ID{}, err
	}
	return aggregate.NewID(aggregateType, value)
}

// errorPage names the template of errors. No page has this name.
const errorPage = "error"

// frame is the value that each template receives.
type frame struct {
	Page     string // name of the page; errorPage if there is none
	Title    string
	View     any
	At       time.Time
	Units    float64
	Requests int
	// Actions reports that the console has actions. Token is the token for the forms of this
	// visitor.
	Actions bool
	Token   string
	Back    string // link of the page, to which forms return
	Done    string // report of an action
	Error   string
	Status  int
	Refresh int // in seconds; 0: never
}

// refreshUnits is the maximum of read units per second that a page may take to refresh itself. A
// page that would take more is refreshed less often.
const refreshUnits = 50

// titled is a view that has a title.
type titled interface{ title() string }

func (c *Console) serveHTML(w http.ResponseWriter, r *http.Request, p page) {
	result := c.read(r.Context(), r, p)
	f := frame{
		Page: p.name, View: result.view, At: result.at, Units: result.units, Requests: result.requests,
		Actions: c.config.AllowActions, Back: back(p.name, r.URL.Query()), Status: http.StatusOK,
	}
	if t, ok := result.view.(titled); ok && result.err == nil {
		f.Title = t.title()
	}
	if p.refreshes && c.config.Refresh > 0 {
		f.Refresh = int(max(c.config.Refresh.Seconds(), result.units/refreshUnits, 1))
	}
	if done := r.URL.Query().Get("done"); done != "" {
		_ = c.seal.open("done", done, &f.Done) // shows only a text that this console has signed
	}
	template := p.template
	if result.err != nil {
		c.explain(r, &f, result.err)
		template = errorPage
	}
	if f.Actions {
		f.Token = c.guard.visitor(w, r)
	}
	c.render(w, template, f)
}

// back returns the link of a page, relative to the console, without the report of an action.
func back(name string, query url.Values) string {
	query.Del("done")
	if len(query) == 0 {
		return "./" + name
	}
	return "./" + name + "?" + query.Encode()
}

// explain sets the error of a page and its status.
func (c *Console) explain(r *http.Request, f *frame, err error) {
	f.Status, f.Error = statusOf(err), err.Error()
	f.Title, f.Refresh = "Error", 0
	if f.Status >= http.StatusInternalServerError && r.Context().Err() == nil {
		c.logError(r, err)
	}
}

func (c *Console) render(w http.ResponseWriter, template string, f frame) {
	var out bytes.Buffer
	if err := templates[template].Execute(&out, f); err != nil {
		c.config.Logger.Error("Console cannot render a page", err, nil)
		http.Error(w, "The page cannot be rendered. The log of the console says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(f.Status)
	_, _ = w.Write(out.Bytes()) // fails if the visitor has left
}

// fail replies to a request with an error.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, folder string, err error) {
	if folder == "api" {
		c.writeJSON(w, statusOf(err), apiError{err.Error()})
		return
	}
	c.failTo(w, r, "", err)
}

// failTo replies with an error page. It links back to a page, unless back is empty.
func (c *Console) failTo(w http.ResponseWriter, r *http.Request, back string, err error) {
	f := frame{Page: errorPage, At: shownTime(c.now()), Back: back, Actions: c.config.AllowActions}
	c.explain(r, &f, err)
	c.render(w, errorPage, f)
}

type (
	apiResult struct {
		Data      any       `json:"data"`
		At        time.Time `json:"at"`
		ReadUnits float64   `json:"read_units"`
		Requests  int       `json:"requests"`
	}
	apiError struct {
		Error string `json:"error"`
	}
)

func (c *Console) serveJSON(w http.ResponseWriter, r *http.Request, p page) {
	result := c.read(r.Context(), r, p)
	if err := result.err; err != nil {
		status := statusOf(err)
		if status >= http.StatusInternalServerError && !errors.Is(r.Context().Err(), context.Canceled) {
			c.logError(r, err)
		}
		c.writeJSON(w, status, apiError{err.Error()})
		return
	}
	c.writeJSON(w, http.StatusOK, apiResult{result.view, result.at, result.units, result.requests})
}

func (c *Console) writeJSON(w http.ResponseWriter, status int, value any) {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		c.config.Logger.Error("Console cannot write JSON", err, nil)
		status, data = http.StatusInternalServerError, []byte(`{"error": "The document cannot be written. The log of the console says why."}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // fails if the visitor has left
}
