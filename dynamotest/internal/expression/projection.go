package expression

import (
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

const projectionKind = "ProjectionExpression"

// Projection is a projection expression.
type Projection struct {
	tree tree
}

// ParseProjection parses a projection expression: document paths separated by commas.
func ParseProjection(source string, a *Attributes) (*Projection, error) {
	var p parser
	if err := p.start(projectionKind, source, a); err != nil {
		return nil, err
	}
	paths := make([]path, 0, 4)
	for {
		paths = append(paths, p.path())
		if !p.accept(tokenComma) {
			break
		}
	}
	p.expect(tokenEnd)
	if err := p.finishEarly(); err != nil {
		return nil, err
	}
	if err := p.resolveAll(paths); err != nil {
		return nil, err
	}
	return &Projection{tree: newTree(paths)}, nil
}

// resolveAll resolves paths and checks that they do not overlap. DynamoDB begins with the last one.
func (p *parser) resolveAll(paths []path) error {
	for i := len(paths) - 1; i >= 0; i-- {
		p.resolve(paths[i])
		if p.late != nil {
			return p.late
		}
		if err := p.separate(paths[i], paths[i+1:]); err != nil {
			return err
		}
	}
	return nil
}

// Apply returns the selected parts of an item. Nested parts stay nested, in maps and lists without
// other elements. Elements of a list keep their order and leave no gaps.
func (p *Projection) Apply(item value.Item) value.Item { return p.tree.projectItem(item) }

// Attributes returns the names of the attributes that the projection selects, completely or partly,
// each once.
func (p *Projection) Attributes() []string { return p.tree.names() }
