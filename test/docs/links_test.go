package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryRelativeLinkLeadsSomewhere(t *testing.T) {
	t.Parallel()
	for _, page := range append(pages(t), "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md", "../SECURITY.md", "../SUPPORT.md") {
		links := relativeLinks(read(t, page))
		for _, link := range links {
			assert.NoError(t, follow(page, link), "%s links to %s", page, link)
		}
	}
}

func TestALinkToNowhereIsNoticed(t *testing.T) {
	t.Parallel()
	page := "# A page\n[one](missing.md) [two](#a-page) [three](#no-such) [four](https://example.com/no)\n```\n[code](no.md)\n```\n"
	links := relativeLinks(page)
	require.Equal(t, []string{"missing.md", "#a-page", "#no-such"}, links)

	file := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(file, []byte(page), 0o600))
	require.Error(t, follow(file, links[0]))
	require.NoError(t, follow(file, links[1]))
	require.Error(t, follow(file, links[2]))
}

// relativeLinks returns the links to files of the repository and to headings, in the text outside
// code blocks.
func relativeLinks(page string) (links []string) {
	for _, match := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(prose(page), -1) {
		if !strings.Contains(match[1], "://") {
			links = append(links, match[1])
		}
	}
	return links
}

// prose returns a page without its code blocks.
func prose(page string) string {
	var text strings.Builder
	for n, block := range strings.Split("\n"+page, "\n```") {
		if n%2 == 0 {
			text.WriteString(block)
		}
	}
	return text.String()
}

// follow returns an error if there is no such file, or no such heading in it.
func follow(from, link string) error {
	path, anchor, hasAnchor := strings.Cut(link, "#")
	target := from
	if path != "" {
		target = filepath.Join(filepath.Dir(from), path)
	}
	if _, err := os.Stat(target); err != nil || !hasAnchor {
		return err
	}
	page, err := os.ReadFile(target)
	if err != nil {
		return err
	}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(prose(string(page)), -1) {
		if slug(heading[1]) == anchor {
			return nil
		}
	}
	return fmt.Errorf("%s has no heading #%s", target, anchor)
}

// slug returns the anchor that GitHub makes for a heading.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}

// pages returns all pages of the documentation, relative to its folder.
func pages(t *testing.T) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			names = append(names, filepath.ToSlash(path))
		}
		return err
	}))
	require.Greater(t, len(names), 20)
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(content)
}
