package expression

import (
	"strconv"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// operand is a path, a value or a call of a function. Exactly one of them is set.
type operand struct {
	path  path
	value types.AttributeValue
	call  *call
}

// call is a function with its operands. The function is nil if the name is unknown.
type call struct {
	at       token
	function *function
	operands []operand
}

// typeName returns the type of an operand if it is known without an item, and otherwise "".
func (o operand) typeName() string {
	switch {
	case o.value != nil:
		return value.Type(o.value)
	case o.call != nil && o.call.function == size:
		return "N"
	default:
		return ""
	}
}

// in returns the value of a condition's operand for an item, nil if there is none.
func (o operand) in(item value.Item) types.AttributeValue {
	switch {
	case o.path != nil:
		return o.path.in(item)
	case o.call != nil:
		return sizeOf(o.call.operands[0].in(item))
	default:
		return o.value
	}
}

// sizeOf returns the result of the function size, nil if the value has no size.
func sizeOf(v types.AttributeValue) types.AttributeValue {
	var n int
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		n = utf16Length(v.Value)
	case *types.AttributeValueMemberB:
		n = len(v.Value)
	case *types.AttributeValueMemberSS:
		n = len(v.Value)
	case *types.AttributeValueMemberNS:
		n = len(v.Value)
	case *types.AttributeValueMemberBS:
		n = len(v.Value)
	case *types.AttributeValueMemberL:
		n = len(v.Value)
	case *types.AttributeValueMemberM:
		n = len(v.Value)
	default:
		return nil
	}
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
}

// utf16Length returns the length of a string in Java, which is the result of size.
func utf16Length(s string) int {
	n := utf8.RuneCountInString(s)
	for i := range len(s) {
		if s[i] >= 0xF0 { // it begins a character of two units
			n++
		}
	}
	return n
}

// operand parses an operand, possibly in parentheses: a path, a placeholder of a value, or a call.
func (p *parser) operand() operand {
	switch {
	case p.token.kind == tokenOpen:
		g := p.openGroup()
		o := p.operand()
		if p.closeGroup(g) {
			p.redundant = true
		}
		return o
	case p.token.kind == tokenValueRef:
		return operand{value: p.value()}
	case p.token.kind == tokenName && p.next.kind == tokenOpen:
		return operand{call: p.call(true)}
	default:
		o := operand{path: p.path()}
		p.resolve(o.path)
		return o
	}
}

// openGroup parses the opening parenthesis of a group, and closeGroup the closing one.
func (p *parser) openGroup() (opened token) {
	opened = p.token
	p.advance()
	return token{kind: tokenOpen, start: opened.start, end: p.token.start}
}

// closeGroup also reports whether the group is redundant, because it only contains another group:
// ((a = :v)).
func (p *parser) closeGroup(opened token) (redundant bool) {
	redundant = p.group.start == opened.end && p.group.end == p.previous.end
	p.expect(tokenClose)
	p.group = token{kind: tokenOpen, start: opened.start, end: p.previous.end}
	return redundant && p.syntax == nil
}

// value parses the placeholder of a value.
func (p *parser) value() types.AttributeValue {
	ref := p.text(p.token)
	if p.token.kind != tokenValueRef {
		p.unexpected()
		return nil
	}
	p.advance()
	v, ok := p.attributes.value(ref)
	if !ok {
		p.failLate("An expression attribute value used in expression is not defined; attribute value: %s", ref)
		return nil
	}
	return v
}
