package main

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
)

// contents is the page whose headings and tables are the navigation.
const contents = "docs/README.md"

// A group is a part of the navigation.
type group struct {
	Title string
	Pages []entry
}

// An entry leads to a page. That of the current page has its headings.
type entry struct {
	Title, Address string
	Current        bool
	Headings       []entry
}

// navigation returns the navigation as seen from a page.
func (s *site) navigation(from *page) (groups []group) {
	list := s.pages[contents]
	if list == nil {
		return nil
	}
	byAddress := map[string]*page{}
	for _, p := range s.pages {
		byAddress[relative(contents, p.address())] = p
	}
	listed := map[*page]bool{}
	for n := list.node.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 2 {
				groups = append(groups, group{Title: list.text(n)})
			}
		case *tables.Table:
			if len(groups) == 0 {
				continue
			}
			last := &groups[len(groups)-1]
			for _, l := range (&page{node: n}).links() {
				if to := byAddress[l.destination()]; to != nil && !listed[to] {
					listed[to] = true
					last.Pages = append(last.Pages, s.entry(from, to))
				}
			}
		}
	}
	return groups
}

func (s *site) entry(from, to *page) entry {
	e := entry{Title: to.title, Address: relative(from.path, to.address()), Current: from == to}
	if e.Current {
		for _, section := range to.sections() {
			if section.level == 2 {
				e.Headings = append(e.Headings, entry{Title: section.heading, Address: "#" + section.anchor})
			}
		}
	}
	return e
}

// A section is a heading with the text below it. The first one of a page may have no heading.
type section struct {
	level                 int
	heading, anchor, text string
}

func (p *page) sections() (all []section) {
	current := section{}
	var body []string
	flush := func() {
		if current.text = strings.Join(body, " "); current.text != "" || current.heading != "" {
			all = append(all, current)
		}
		body = nil
	}
	for n := p.node.FirstChild(); n != nil; n = n.NextSibling() {
		heading, ok := n.(*ast.Heading)
		if !ok {
			body = append(body, p.text(n))
			continue
		}
		flush()
		id, _ := heading.AttributeString("id")
		anchor, _ := id.([]byte)
		current = section{level: heading.Level, heading: p.text(heading), anchor: string(anchor)}
	}
	flush()
	return all
}

// index returns what the search looks for: address, title of the page, heading and text of each
// section.
func (s *site) index() (all [][4]string) {
	for _, name := range s.order {
		p := s.pages[name]
		for _, section := range p.sections() {
			address, heading := p.address(), ""
			if section.level > 1 {
				address, heading = address+"#"+section.anchor, section.heading
			}
			all = append(all, [4]string{address, p.title, heading, section.text})
		}
	}
	return all
}
