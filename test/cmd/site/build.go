package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed static
var static embed.FS

var layout = template.Must(template.ParseFS(static, "static/page.html"))

// A site is the pages and images of a repository.
type site struct {
	root   string
	pages  map[string]*page // by the path of the file, with slashes
	order  []string         // the paths in a fixed order
	images map[string]bool  // paths of files that pages show
}

// build writes the site of the repository at root to the folder out, and returns the number of
// pages. It writes nothing if a link leads nowhere.
func build(root, out string) (pages int, err error) {
	s := &site{root: root, pages: map[string]*page{}, images: map[string]bool{}}
	if err := s.read(); err != nil {
		return 0, err
	}
	if err := s.link(); err != nil {
		return 0, err
	}
	if err := remove(out); err != nil {
		return 0, err
	}
	return len(s.order), s.write(out)
}

// searchIndex is a file that only a site has.
const searchIndex = "search-index.js"

// remove removes a former site. It refuses a folder with other files.
func remove(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == searchIndex }) {
		return fmt.Errorf("%s has other files than those of a site: use another folder", out)
	}
	return os.RemoveAll(out)
}

// read parses the pages of the root folder and of docs.
func (s *site) read() error {
	names, err := filepath.Glob(filepath.Join(s.root, "*.md"))
	if err != nil {
		return err
	}
	err = filepath.WalkDir(filepath.Join(s.root, "docs"), func(name string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".md") {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(s.root, name)
		if err != nil {
			return err
		}
		p := parse(filepath.ToSlash(relative), source)
		s.pages[p.path] = p
		s.order = append(s.order, p.path)
	}
	slices.Sort(s.order)
	return nil
}

// link changes the links of all pages to those of the site.
func (s *site) link() error {
	var broken []error
	for _, name := range s.order {
		for _, l := range s.pages[name].links() {
			to, err := s.resolve(name, l.destination(), l.image)
			if err != nil {
				broken = append(broken, err)
				continue
			}
			l.set(to)
		}
	}
	return errors.Join(broken...)
}

// resolve returns the address in the site of a link in a page.
func (s *site) resolve(from, link string, image bool) (string, error) {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return link, nil
	}
	file, anchor, hasAnchor := strings.Cut(link, "#")
	target := from
	if file != "" {
		target = path.Join(path.Dir(from), file)
	}
	if to := s.pages[target]; to != nil {
		if hasAnchor && !to.anchors[anchor] {
			return "", fmt.Errorf("%s links to %s: %s has no such heading", from, link, target)
		}
		address := relative(from, to.address())
		if file == "" {
			address = ""
		}
		if hasAnchor {
			address += "#" + anchor
		}
		return address, nil
	}
	info, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(target)))
	if err != nil || strings.HasPrefix(target, "..") {
		return "", fmt.Errorf("%s links to %s: there is no such file", from, link)
	}
	switch {
	case image:
		s.images[target] = true
		return relative(from, target), nil
	case info.IsDir():
		return repository + "/tree/main/" + target, nil
	default:
		return repository + "/blob/main/" + target, nil
	}
}

// relative returns the address of a file as seen from a page, both relative to the root.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}

func (s *site) write(out string) error {
	for _, name := range s.order {
		content, err := s.page(s.pages[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := write(out, s.pages[name].address(), content); err != nil {
			return err
		}
	}
	for image := range s.images {
		content, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(image)))
		if err != nil {
			return err
		}
		if err := write(out, image, content); err != nil {
			return err
		}
	}
	return s.writeAssets(out)
}

// writeAssets writes the style, the script and the index of the search.
func (s *site) writeAssets(out string) error {
	style, err := static.ReadFile("static/style.css")
	if err != nil {
		return err
	}
	colors, err := codeColors()
	if err != nil {
		return err
	}
	script, err := static.ReadFile("static/search.js")
	if err != nil {
		return err
	}
	// A script, because a page that was opened from a file may not fetch other files.
	index, err := json.Marshal(s.index())
	if err != nil {
		return err
	}
	return errors.Join(
		write(out, "style.css", append(style, colors...)),
		write(out, "search.js", script),
		write(out, searchIndex, slices.Concat([]byte("searchIndex = "), index, []byte(";\n"))),
	)
}

// write writes a file with a path relative to the folder out.
func write(out, name string, content []byte) error {
	file := filepath.Join(out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // a public site
		return err
	}
	return os.WriteFile(file, content, 0o644) //nolint:gosec // a public site
}

// page returns the HTML of a page.
func (s *site) page(p *page) ([]byte, error) {
	body, err := p.html()
	if err != nil {
		return nil, err
	}
	data := struct {
		Title, Root, Source string
		Navigation          []group
		Body                template.HTML
	}{
		p.title, relative(p.path, ""), repository + "/blob/main/" + p.path,
		s.navigation(p), template.HTML(body), //nolint:gosec // rendered from pages of the repository
	}
	var out bytes.Buffer
	err = layout.Execute(&out, data)
	return out.Bytes(), err
}
