package main

import (
	"html"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../.."

func TestEveryLinkOfTheSiteLeadsSomewhere(t *testing.T) {
	t.Parallel()
	files := buildSite(t)
	attributes := regexp.MustCompile(`\s(href|src|id)="([^"]*)"`)
	ids := map[string]map[string]bool{}
	for name, content := range files {
		ids[name] = map[string]bool{}
		for _, match := range attributes.FindAllStringSubmatch(content, -1) {
			if match[1] == "id" {
				assert.False(t, ids[name][match[2]], "%s has two elements with the id %s", name, match[2])
				ids[name][match[2]] = true
			}
		}
	}
	followed := 0
	for name, content := range files {
		if path.Ext(name) != ".html" {
			continue
		}
		for _, match := range attributes.FindAllStringSubmatch(content, -1) {
			if match[1] == "id" || strings.Contains(match[2], "://") {
				continue
			}
			to, err := url.Parse(html.UnescapeString(match[2]))
			require.NoError(t, err, name)
			target := name
			if to.Path != "" {
				target = path.Join(path.Dir(name), to.Path)
			}
			// Without the content of all files in the message.
			if _, ok := files[target]; !ok || to.Fragment != "" && !ids[target][to.Fragment] {
				t.Errorf("%s links to %s", name, match[2])
			}
			followed++
		}
	}
	assert.Greater(t, followed, 1000)
}

func TestTheNavigationHasEveryPageOfDocs(t *testing.T) {
	t.Parallel()
	files := buildSite(t)
	_, navigation, _ := strings.Cut(files["docs/concepts.html"], "<nav")
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "docs"), func(name string, _ fs.DirEntry, err error) error {
		relative, _ := filepath.Rel(filepath.Join(root, "docs"), name)
		if strings.HasSuffix(name, ".md") && relative != "README.md" {
			address := (&page{path: filepath.ToSlash(relative)}).address()
			if !strings.Contains(navigation, `<a href="../docs/`+address+`"`) {
				t.Errorf("the navigation lacks %s", address)
			}
		}
		return err
	}))
	assert.Contains(t, navigation, `<a href="../index.html">Millrace</a>`)
	assert.Contains(t, navigation, `aria-current="page">Concepts</a>`)
	assert.Contains(t, navigation, `<a href="#failures">Failures</a>`)
}

func TestCodeIsHighlighted(t *testing.T) {
	t.Parallel()
	files := buildSite(t)
	assert.Contains(t, files["index.html"], `<span class="kd">func</span>`)
	assert.Contains(t, files["style.css"], ".chroma .kd")
}

// A browser opens a page from a file and searches.
func TestTheSearchWorksInABrowserWithoutAServer(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	out := t.TempDir()
	_, err := build(root, out)
	require.NoError(t, err)
	search := func(query string) string {
		file := url.URL{Scheme: "file", Path: filepath.ToSlash(out) + "/docs/guides/sql.html", RawQuery: url.Values{"q": {query}}.Encode()}
		dom, err := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu",
			"--disable-dev-shm-usage", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=10000", "--dump-dom", file.String()).Output()
		require.NoError(t, err)
		_, results, found := strings.Cut(string(dom), `<div id="results"`)
		require.True(t, found)
		results, _, _ = strings.Cut(results, "</form>")
		return results
	}
	results := search("Poison policy")
	first, _, _ := strings.Cut(results, "<small>")
	assert.Contains(t, first, `<a href="../../docs/howto/handle-a-poison-event.html#choose-the-policy-in-advance">`)
	assert.Contains(t, results, "<mark>poison</mark>")
	assert.Contains(t, search("<b>nowhere"), "Nothing found.")
}

func TestALinkToNowhereIsAnError(t *testing.T) {
	t.Parallel()
	for link, message := range map[string]string{
		"docs/b.md#two":  "",
		"docs/b.md#no":   "README.md links to docs/b.md#no: docs/b.md has no such heading",
		"docs/c.md":      "README.md links to docs/c.md: there is no such file",
		"../secret":      "README.md links to ../secret: there is no such file",
		"docs":           "",
		"https://a.test": "",
	} {
		folder, out := t.TempDir(), filepath.Join(t.TempDir(), "site")
		require.NoError(t, os.Mkdir(filepath.Join(folder, "docs"), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "README.md"), []byte("# A\n["+"text]("+link+")\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "docs", "b.md"), []byte("# B\n## Two\n"), 0o600))
		_, err := build(folder, out)
		if message == "" {
			assert.NoError(t, err, link)
			assert.FileExists(t, filepath.Join(out, "docs", "b.html"))
		} else {
			assert.EqualError(t, err, message)
			assert.NoDirExists(t, out)
		}
	}
}

func TestOnlyAFormerSiteIsRemoved(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	own := filepath.Join(out, "notes.txt")
	require.NoError(t, os.WriteFile(own, nil, 0o600))
	_, err := build(root, out)
	require.ErrorContains(t, err, "has other files than those of a site")
	require.FileExists(t, own)
	require.NoError(t, os.WriteFile(filepath.Join(out, searchIndex), nil, 0o600))
	_, err = build(root, out)
	require.NoError(t, err)
	require.NoFileExists(t, own)
}

func TestAnchorsAreThoseOfGitHub(t *testing.T) {
	t.Parallel()
	p := parse("p.md", []byte("# A `Config`, and more\n\ntext\n\n## It's 2_a\n\n## Twice\n\n## Twice\n"))
	var all []string
	for _, s := range p.sections() {
		all = append(all, s.anchor)
	}
	assert.Equal(t, []string{"a-config-and-more", "its-2_a", "twice", "twice-1"}, all)
	assert.Equal(t, "A Config, and more", p.title)
}

// buildSite returns the content of each file of the site, by its path.
func buildSite(t *testing.T) map[string]string {
	t.Helper()
	out := t.TempDir()
	pages, err := build(root, out)
	require.NoError(t, err)
	assert.Greater(t, pages, 70)
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(out, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		relative, _ := filepath.Rel(out, name)
		files[filepath.ToSlash(relative)] = string(content)
		return err
	}))
	return files
}

func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	t.Skip("needs Chromium (Debian: apt-get install chromium)")
	return ""
}
