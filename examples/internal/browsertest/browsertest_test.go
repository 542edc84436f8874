package browsertest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/examples/internal/browsertest"
)

var chromium browsertest.Chromium // one for all tests

func TestMain(m *testing.M) {
	code := m.Run()
	chromium.Close()
	os.Exit(code)
}

// serve returns the URL of a page with a body and a script.
func serve(t *testing.T, body, script string) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		greeting := ""
		if _, err := r.Cookie("known"); err != nil {
			http.SetCookie(w, &http.Cookie{Name: "known", Value: "yes"})
			greeting = "<p>You are new here"
		}
		fmt.Fprintf(w, `<!DOCTYPE html><link rel="icon" href="/icon"><title>Page</title><body>%s%s<script src="script.js"></script>`, body, greeting)
	})
	mux.HandleFunc("GET /script.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, script)
	})
	mux.HandleFunc("GET /icon", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "image/svg+xml") })
	mux.HandleFunc("GET /broken", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: news\ndata: {\"it\": \"works\"}\n\n")
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestControlsAreFoundByTheirNamesAndReachedByTheKeyboard(t *testing.T) {
	t.Parallel()
	url := serve(t, `<label>Name <input id="name"></label> <label>Size <select><option>S<option>L</select></label>
		<button aria-label="Greet">!</button><button hidden>Greet</button><p id="out">`, `
		document.querySelector("button").onclick = () => setTimeout(() => {
			document.querySelector("#out").textContent = "Hello " + document.querySelector("#name").value +
				", size " + document.querySelector("select").value
		}, 50)`)
	ada := chromium.User(t, "Ada")
	ada.Open(url)

	ada.Type("Name", "somebody")
	ada.Type("Name", "Ada")
	ada.Choose("Size", "L")
	ada.Press("Greet")
	ada.Sees("Hello Ada, size L")
	ada.SeesNo("somebody")

	ada.Open(url)
	ada.TabTo("Name")
	ada.Keys("Eve")
	ada.TabTo("Greet")
	assert.Equal(t, "Greet", ada.Focus())
	ada.Keys(kb.Enter)
	ada.Sees("Hello Eve")
}

func TestUsersHaveCookiesOfTheirOwn(t *testing.T) {
	t.Parallel()
	url := serve(t, "<p>Welcome", "")
	ada, ben := chromium.User(t, "Ada"), chromium.User(t, "Ben")
	ada.Open(url)
	ada.Sees("You are new here")
	ada.Reload()
	ada.SeesNo("You are new here")
	ben.Open(url)
	ben.Sees("You are new here")
}

func TestPreferencesAndSizesAreThoseOfTheUser(t *testing.T) {
	t.Parallel()
	url := serve(t, "", "")
	ada, ben := chromium.User(t, "Ada", browsertest.Phone, browsertest.Dark, browsertest.Still), chromium.User(t, "Ben")
	ada.Open(url)
	ben.Open(url)
	for _, media := range []string{"(prefers-color-scheme: dark)", "(prefers-reduced-motion: reduce)"} {
		query := fmt.Sprintf("matchMedia(%q).matches", media)
		assert.True(t, browsertest.Evaluate[bool](ada, query), media)
		assert.False(t, browsertest.Evaluate[bool](ben, query), media)
	}
	assert.Equal(t, 360, browsertest.Evaluate[int](ada, "screen.width"))
}

func TestAControlIsFoundInThePartThatShowsAText(t *testing.T) {
	t.Parallel()
	url := serve(t, `<article>Tea <button>Order</button></article><article>Coffee <button>Order</button><table><tr><td>Coffee</table></article>
		<table><tr><td>Cake<td><button>Order</button></table><p id="out">`, `
		for (const b of document.querySelectorAll("button")) b.onclick = () => {
			document.querySelector("#out").textContent += b.closest("article, tr").innerText.trim().slice(0, 3) + ";"
		}`)
	ada := chromium.User(t, "Ada")
	ada.Open(url)
	ada.PressIn("Coffee", "Order")
	ada.PressIn("Cake", "Order")
	ada.PressIn("Tea", "Order")
	ada.Sees("Cof;Cak;Tea;")
}

func TestTimeZonesAndScriptsAreThoseOfTheUser(t *testing.T) {
	t.Parallel()
	url := serve(t, `<p id="out"><noscript>Without scripts</noscript>`, `
		document.querySelector("#out").textContent = new Date(0).toLocaleTimeString()`)
	ada, ben := chromium.User(t, "Ada", browsertest.TimeZone("Asia/Tokyo")), chromium.User(t, "Ben", browsertest.NoScripts)
	ada.Open(url)
	ada.Sees("09:00:00")
	ben.Open(url)
	ben.Sees("Without scripts")
}

func TestEventsOfTheServerAreKept(t *testing.T) {
	t.Parallel()
	ada := chromium.User(t, "Ada")
	ada.Open(serve(t, `<p id="out">`, `
		const source = new EventSource("/events");
		source.addEventListener("news", (e) => { document.querySelector("#out").textContent = "heard"; source.close() })`))
	ada.Sees("heard")
	assert.Equal(t, []string{`{"it": "works"}`}, ada.Received())
}

func TestAPageThatCannotBeReadFails(t *testing.T) {
	t.Parallel()
	for failure, body := range map[string]string{
		`sideways to see all of "DIV#wide.`: `<div id="wide">` + strings.Repeat("wide", 100) + `</div>`,
		`hardly read "faint (4.4)"`:         `<font color="#787878">faint</font> <font color="#767676">clear</font>`,
		"":                                  `<h1><font color="#787878">large</font></h1><p hidden><font color="white">hidden</font>`,
	} {
		t.Run(failure, func(t *testing.T) {
			t.Parallel()
			recorded := &recorder{T: t}
			ada := chromium.User(recorded, "Ada", browsertest.Phone)
			ada.Open(serve(t, `<meta name="viewport" content="width=device-width">`+body, ""))
			ada.Readable()
			if failure == "" {
				assert.Empty(t, recorded.failures)
				return
			}
			if assert.Len(t, recorded.failures, 1) {
				assert.Contains(t, recorded.failures[0], failure)
			}
		})
	}
}

// recorder receives the failures of a page instead of the test.
type recorder struct {
	*testing.T
	failures []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func TestATestFailsOnTroubleThatItDoesNotExpect(t *testing.T) {
	t.Parallel()
	// Each page says that it is loaded after its trouble.
	for trouble, page := range map[string]struct{ body, script string }{
		"uncaught exception":      {script: `setTimeout(loaded); throw new Error("oops")`},
		"in promise":              {script: `window.onunhandledrejection = () => setTimeout(loaded); Promise.reject(new Error("oops"))`},
		`console.error: "oops"`:   {script: `console.error("oops"); loaded()`},
		"Content Security Policy": {body: `<script>document.title = "never"</script>`, script: `loaded()`},
		"status 404 of":           {script: `fetch("/nothing").finally(loaded)`},
		"net::ERR_EMPTY_RESPONSE": {script: `fetch("/broken").catch(() => {}).finally(loaded)`},
	} {
		t.Run(trouble, func(t *testing.T) {
			t.Parallel()
			url := serve(t, page.body, "const loaded = () => document.body.append('loaded');"+page.script)
			for _, expected := range []bool{false, true} {
				recorded := &recorder{T: t}
				t.Cleanup(func() { // after the cleanup of the user
					if expected {
						assert.Empty(t, recorded.failures)
						return
					}
					if assert.NotEmpty(t, recorded.failures) {
						assert.Contains(t, recorded.failures[0], trouble)
					}
				})
				ada := chromium.User(recorded, "Ada")
				if expected {
					ada.Expects(trouble)
				}
				ada.Open(url)
				ada.Sees("loaded")
			}
		})
	}
}
