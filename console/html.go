package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
)

//go:embed templates static
var files embed.FS

// templates holds the templates of the pages by their names, each with the layout and the parts.
var templates = map[string]*template.Template{}

// version is a part of the links to assets. So browsers may keep assets, and load them again after
// they have changed.
var version string

func init() {
	sum := sha256.New()
	assets, _ := fs.Glob(files, "static/*")
	for _, name := range assets {
		data, _ := files.ReadFile(name)
		_, _ = sum.Write(data)
	}
	version = hex.EncodeToString(sum.Sum(nil))[:12]
	names, _ := fs.Glob(files, "templates/*.html")
	for _, name := range names {
		base := path.Base(name)
		if base == "layout.html" || base == "parts.html" {
			continue
		}
		templates[strings.TrimSuffix(base, ".html")] = template.Must(template.New("layout.html").Funcs(functions).
			ParseFS(files, "templates/layout.html", "templates/parts.html", name))
	}
}

var functions = template.FuncMap{
	"link":    link,
	"dict":    dict,
	"time":    exactTime,
	"isotime": isoTime,
	"num":     number,
	"bytes":   byteSize,
	"span":    span,
	"rate":    rateText,
	"units":   unitText,
	"plural":  plural,
	"version": func() string { return version },
	"pretty":  pretty,
	"oneline": oneLine,
	"isZero":  time.Time.IsZero,
	"inc":     func(n uint64) uint64 { return n + 1 },
}

// link returns the link of a page with parameters. It leaves out empty parameters. It keeps a 0,
// which may be the id of an aggregate.
func link(page string, pairs ...any) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if value := fmt.Sprint(pairs[i+1]); value != "" {
			query.Set(fmt.Sprint(pairs[i]), value)
		}
	}
	if len(query) == 0 {
		return "./" + page
	}
	return "./" + page + "?" + query.Encode()
}

// dict returns a map, for templates that take several values.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

const timeLayout = "2006-01-02 15:04:05.000 UTC"

// exactTime returns a time in UTC. The script of the page shows it in the visitor's zone.
func exactTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

func isoTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// number returns a number with commas between thousands.
func number(n any) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func byteSize(n int) string {
	const kb = 1 << 10
	switch {
	case n < kb:
		return plural(n, "byte", "bytes")
	case n < kb*kb:
		return fmt.Sprintf("%.1f KB", float64(n)/kb)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/kb/kb)
}

func plural(n any, one, many string) string {
	if text := number(n); text != "1" {
		return text + " " + many
	}
	return "1 " + one
}

// orMore is plural for a number that may be too small if more is set.
func orMore(n any, more bool, one, many string) string {
	if more {
		return number(n) + " or more " + many
	}
	return plural(n, one, many)
}

// span returns a duration in its one or two largest units.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	day := 24 * time.Hour
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 2*day:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d/day))
}

// rateText returns a rate in events per second. A nil rate is not known.
func rateText(perSecond *float64) string {
	switch {
	case perSecond == nil:
		return "–"
	case *perSecond == 0:
		return "0/s"
	case *perSecond < 1:
		return fmt.Sprintf("%.2f/s", *perSecond)
	case *perSecond < 100:
		return fmt.Sprintf("%.1f/s", *perSecond)
	}
	return number(int(*perSecond)) + "/s"
}

func unitText(n float64) string {
	text := strconv.FormatFloat(n, 'f', 1, 64)
	whole, part, _ := strings.Cut(text, ".")
	if part == "0" {
		return number(whole)
	}
	return number(whole) + "." + part
}

// pretty returns JSON with indentation, unless it is nested too deeply.
func pretty(data []byte) string {
	var out bytes.Buffer
	if levels(data) > mostLevels || json.Indent(&out, data, "", "  ") != nil {
		return string(data)
	}
	return readable.Replace(out.String())
}

// readable replaces the escapes that encoding/json writes for <, > and &. Templates escape these
// characters by themselves. The pair of backslashes comes first, so that \\u003c stays as it is.
var readable = strings.NewReplacer(
	`\\`, `\\`, `\u003c`, "<", `\u003C`, "<", `\u003e`, ">", `\u003E`, ">", `\u0026`, "&",
)

// oneLine returns the beginning of JSON or text in one line.
func oneLine(data []byte) string {
	const longest = 120
	var out bytes.Buffer
	if json.Compact(&out, data) != nil {
		out.Reset()
		out.Write(data)
	}
	text := []rune(readable.Replace(strings.ToValidUTF8(out.String(), "\uFFFD")))
	if len(text) > longest {
		return string(text[:longest]) + "…"
	}
	return string(text)
}

func serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	data, err := files.ReadFile("static/" + name)
	if err != nil {
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	// The link contains the version.
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
}
