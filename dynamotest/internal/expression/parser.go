package expression

import (
	"strconv"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// parser parses one expression and records its faults. DynamoDB finds faults in several passes.
// This parser has a single pass, and records for each fault the pass in which DynamoDB finds it.
type parser struct {
	kind       string
	source     string
	attributes *Attributes

	previous, token, next token
	first                 bool // whether token is the first one

	syntax    error // it ends the parsing
	group     token // the parentheses that were closed last
	redundant bool  // redundant parentheses
	// early is the first fault in the text of these kinds: reserved words, misplaced functions,
	// huge indexes.
	early     error
	earlyAt   int
	late      error // the first of all other faults, with operands before their operator
	operators int

	elements []element // elements of all paths, which are slices of it
}

func (p *parser) start(kind, source string, attributes *Attributes) error {
	p.kind, p.source, p.attributes = kind, source, attributes
	switch {
	case source == "":
		return p.invalid("The expression can not be empty;")
	case len(source) > maxSize:
		if kind == updateKind || kind == projectionKind { // these messages do not contain the size
			return p.invalid("Expression size has exceeded the maximum allowed size;")
		}
		return p.invalid("Expression size has exceeded the maximum allowed size; expression size: %d", len(source))
	}
	p.token = scan(source, 0)
	p.next = scan(source, p.token.end)
	p.first = true
	return nil
}

// finish returns the fault that DynamoDB would report, if any.
func (p *parser) finish() error {
	if err := p.finishEarly(); err != nil {
		return err
	}
	return p.finishLate()
}

func (p *parser) finishEarly() error {
	switch {
	case p.redundant: // it was found before a fault of syntax ended the parsing
		return p.invalid("The expression has redundant parentheses;")
	case p.syntax != nil:
		return p.syntax
	default:
		return p.early
	}
}

func (p *parser) finishLate() error {
	if p.late == nil && p.operators > maxOperators {
		return p.invalid("The expression contains too many operators; operator count: %d", maxOperators+1)
	}
	return p.late
}

func (p *parser) advance() {
	p.previous, p.token = p.token, p.next
	p.next = scan(p.source, p.token.end)
	p.first = false
}

// accept consumes the next token if it has the kind.
func (p *parser) accept(kind tokenKind) bool {
	if p.token.kind != kind {
		return false
	}
	p.advance()
	return true
}

// expect consumes a token of the kind. Another token is a fault of syntax.
func (p *parser) expect(kind tokenKind) {
	if !p.accept(kind) {
		p.unexpected()
	}
}

func (p *parser) text(t token) string { return p.source[t.start:t.end] }

// unexpected records a fault of syntax at the token. To end the parsing, it replaces the rest by
// the end of the text, at which every loop ends.
func (p *parser) unexpected() {
	if p.syntax == nil {
		from, to := p.previous.start, p.next.end
		if p.first {
			from = 0
		}
		if p.next.kind == tokenEnd || p.token.kind == tokenEnd {
			to = len(p.source)
		}
		text := p.text(p.token)
		if p.token.kind == tokenEnd {
			text = "<EOF>"
		}
		p.syntax = p.invalid("Syntax error; token: \"%s\", near: \"%s\"", text, p.source[from:to])
	}
	end := token{kind: tokenEnd, start: len(p.source), end: len(p.source)}
	p.token, p.next = end, end
}

func (p *parser) invalid(format string, args ...any) error {
	return apierror.Validation("Invalid "+p.kind+": "+format, args...)
}

func (p *parser) failEarly(at token, format string, args ...any) {
	if p.early == nil || at.start < p.earlyAt {
		p.early, p.earlyAt = p.invalid(format, args...), at.start
	}
}

func (p *parser) failLate(format string, args ...any) {
	if p.late == nil {
		p.late = p.invalid(format, args...)
	}
}

// path parses a document path. resolve resolves its names.
func (p *parser) path() path {
	if p.elements == nil {
		p.elements = make([]element, 0, 8)
	}
	from := len(p.elements)
	p.name(false)
	for {
		switch {
		case p.accept(tokenDot):
			p.name(true)
		case p.accept(tokenOpenIndex):
			p.index()
			p.expect(tokenCloseIndex)
		default:
			return path(p.elements[from:len(p.elements):len(p.elements)])
		}
	}
}

// name parses an element of a path. In a map, DynamoDB treats :name as the placeholder of a name,
// although such a placeholder cannot be defined.
func (p *parser) name(inMap bool) {
	switch kind := p.token.kind; {
	case kind == tokenName:
		word := p.text(p.token)
		if isReserved(word) {
			p.failEarly(p.token, "Attribute name is a reserved keyword; reserved keyword: %s", word)
		}
		p.elements = append(p.elements, element{name: word, index: -1})
		p.advance()
	case kind == tokenNameRef, kind == tokenValueRef && inMap:
		p.elements = append(p.elements, element{name: p.text(p.token), index: -1})
		p.advance()
	default:
		p.unexpected()
	}
}

func (p *parser) index() {
	text := p.text(p.token)
	if p.token.kind == tokenNumber {
		index, err := strconv.ParseInt(text, 10, 64)
		if err != nil || index > maxIndex {
			p.failEarly(p.token, "List index is not within the allowable range; index: [%s]", text)
		}
		p.elements = append(p.elements, element{index: int(index)})
	}
	p.expect(tokenNumber)
}

// resolve replaces the placeholders in a path by names.
func (p *parser) resolve(path path) {
	if len(path) > maxDepth {
		p.failLate("The document path has too many nesting levels; nesting levels: %d", len(path))
	}
	for i, e := range path {
		if e.isIndex() || e.name[0] != '#' && e.name[0] != ':' {
			continue
		}
		name, ok := p.attributes.name(e.name)
		if !ok {
			p.failLate("An expression attribute name used in the document path is not defined; attribute name: %s", e.name)
			return
		}
		path[i].name = name
	}
}

// separate checks that a path does not overlap with the later paths in the expression. DynamoDB
// checks the last one first.
func (p *parser) separate(one path, others []path) error {
	for _, two := range others {
		switch one.relationTo(two) {
		case apart:
			continue
		case overlaps:
			return p.invalid("Two document paths overlap with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", one, two)
		case conflicts:
			return p.invalid("Two document paths conflict with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", one, two)
		}
	}
	return nil
}
