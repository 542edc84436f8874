package expression

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// function describes a function for the parser.
type function struct {
	name     string
	operands int
	inUpdate bool // it belongs in update expressions; otherwise it belongs in conditions
	// asOperand reports that the function can be an operand.
	asOperand bool
	// asWhole reports that the function can be a whole condition or, in an update, a whole value.
	asWhole bool
}

var (
	attributeExists    = &function{name: "attribute_exists", operands: 1, asWhole: true}
	attributeNotExists = &function{name: "attribute_not_exists", operands: 1, asWhole: true}
	attributeType      = &function{name: "attribute_type", operands: 2, asWhole: true}
	beginsWith         = &function{name: "begins_with", operands: 2, asWhole: true}
	contains           = &function{name: "contains", operands: 2, asWhole: true}
	size               = &function{name: "size", operands: 1, asOperand: true}
	ifNotExists        = &function{name: "if_not_exists", operands: 2, inUpdate: true, asOperand: true, asWhole: true}
	listAppend         = &function{name: "list_append", operands: 2, inUpdate: true, asWhole: true}
)

// lookUp returns the function with a name, and nil if there is none. Names are case-sensitive.
func lookUp(name string) *function {
	switch name {
	case attributeExists.name:
		return attributeExists
	case attributeNotExists.name:
		return attributeNotExists
	case attributeType.name:
		return attributeType
	case beginsWith.name:
		return beginsWith
	case contains.name:
		return contains
	case size.name:
		return size
	case ifNotExists.name:
		return ifNotExists
	case listAppend.name:
		return listAppend
	default:
		return nil
	}
}

// call parses a call. The token is its name, and the next token is its parenthesis.
func (p *parser) call(asOperand bool) *call {
	c := &call{at: p.token}
	name := p.text(c.at)
	f, inUpdate := lookUp(name), p.kind == updateKind
	switch {
	case f == nil:
		p.failEarly(c.at, "Invalid function name; function: %s", name)
	case f.inUpdate && !inUpdate:
		p.failEarly(c.at, "The function is not allowed in a condition expression; function: %s", name)
	case !f.inUpdate && inUpdate:
		p.failEarly(c.at, "The function is not allowed in an update expression; function: %s", name)
	default:
		c.function = f
		if asOperand && !f.asOperand {
			p.misplaced(c)
		}
	}
	p.operators++
	p.advance()
	p.advance()
	c.operands = make([]operand, 0, 2)
	for {
		c.operands = append(c.operands, p.operand())
		if !p.accept(tokenComma) {
			break
		}
	}
	p.expect(tokenClose)
	p.checkCall(c.function, c.operands)
	return c
}

func (p *parser) misplaced(c *call) {
	p.failEarly(c.at, "The function is not allowed to be used this way in an expression; function: %s", c.function.name)
}

// checkCall checks the operands of a function.
func (p *parser) checkCall(f *function, operands []operand) {
	if f == nil || p.syntax != nil {
		return
	}
	if len(operands) != f.operands {
		p.failLate("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", f.name, len(operands))
		return
	}
	switch f {
	case attributeExists, attributeNotExists, ifNotExists:
		if operands[0].path == nil {
			p.failLate("Operator or function requires a document path; operator or function: %s", f.name)
		}
		p.checkDistinct(f.name, operands)
	case attributeType:
		p.checkAttributeType(operands)
	case beginsWith:
		p.checkTypes(f.name, operands, "S", "B")
		p.checkDistinct(f.name, operands)
	case contains:
		p.checkDistinct(f.name, operands)
	case size:
		p.checkTypes(f.name, operands, "S", "B", "SS", "NS", "BS", "L", "M")
	case listAppend:
		p.checkTypes(f.name, operands, "L")
	}
}

func (p *parser) checkAttributeType(operands []operand) {
	p.checkDistinct(attributeType.name, operands)
	switch v := operands[1].value.(type) {
	case *types.AttributeValueMemberS:
		if !isTypeName(v.Value) {
			p.failLate("Invalid attribute type name found; type: %s, valid types: {N,BS,L,B,NULL,M,S,SS,NS,BOOL}", v.Value)
		}
	default:
		found := operands[1].typeName()
		// The type of an attribute is not known here, so DynamoDB requires a value.
		if found == "" {
			found = "{N,BS,L,B,NULL,M,S,SS,NS,BOOL}"
		}
		p.wrongType(attributeType.name, found)
	}
}

func isTypeName(name string) bool {
	switch name {
	case "S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS":
		return true
	default:
		return false
	}
}

// checkTypes refuses operands of other types, if their types are known.
func (p *parser) checkTypes(operator string, operands []operand, allowed ...string) {
operands:
	for _, o := range operands {
		name := o.typeName()
		if name == "" {
			continue
		}
		for _, other := range allowed {
			if name == other {
				continue operands
			}
		}
		p.wrongType(operator, name)
		return
	}
}

func (p *parser) wrongType(operator, name string) {
	p.failLate("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", operator, name)
}

// checkDistinct refuses an attribute that is compared with itself.
func (p *parser) checkDistinct(operator string, operands []operand) {
	first := operands[0].path
	if first == nil {
		return
	}
	for _, o := range operands[1:] {
		if first.equal(o.path) {
			p.failLate("The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %s", operator, first)
			return
		}
	}
}
