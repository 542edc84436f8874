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

// templates are those of the pages, each with the layout and the parts that all share.
var templates = map[string]*template.Template{}

// version is in the links to assets, so that a browser can keep them and gets new ones with a new
// binary.
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

// link returns the link of a page with parameters, those that are empty left out. A 0 stays, as it
// may be the id of an aggregate.
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

// dict is a map for a template that takes several values.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

const timeLayout = "2006-01-02 15:04:05.000 UTC"

// exactTime is a time in UTC; the script shows it in the visitor's zone.
func exactTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

func isoTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// number has commas between thousands.
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

// span is a duration with its two largest units.
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

// rateText is a number for each second, nil where it is not known.
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

// pretty is JSON with indentation, unless it is nested too deeply.
func pretty(data []byte) string {
	var out bytes.Buffer
	if levels(data) > mostLevels || json.Indent(&out, data, "", "  ") != nil {
		return string(data)
	}
	return readable(out.String())
}

// readable undoes what encoding/json does to <, > and &, which templates escape anyway.
func readable(text string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(text, '\\')
		if i < 0 || i+2 > len(text) {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:i])
		escape := text[i : i+2] // also of a backslash
		if i+6 <= len(text) {
			if plain, ok := plainOf[strings.ToLower(text[i:i+6])]; ok {
				escape = text[i : i+6]
				out.WriteString(plain)
				text = text[i+len(escape):]
				continue
			}
		}
		out.WriteString(escape)
		text = text[i+len(escape):]
	}
}

var plainOf = map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"}

// oneLine is the beginning of JSON or text, in one line.
func oneLine(data []byte) string {
	const longest = 120
	var out bytes.Buffer
	if json.Compact(&out, data) != nil {
		out.Reset()
		out.Write(data)
	}
	text := []rune(readable(strings.ToValidUTF8(out.String(), "\uFFFD")))
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
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable") // its link has the version
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
}
