package expression

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// Condition is a condition or filter expression.
type Condition struct {
	root predicate
}

// ParseCondition parses a condition. The kind is the name of the request's parameter, with which
// error messages begin: ConditionExpression or FilterExpression.
func ParseCondition(kind, source string, a *Attributes) (*Condition, error) {
	root, err := parsePredicate(kind, source, a)
	if err != nil {
		return nil, err
	}
	return &Condition{root: root}, nil
}

func parsePredicate(kind, source string, a *Attributes) (predicate, error) {
	var p parser
	if err := p.start(kind, source, a); err != nil {
		return nil, err
	}
	root := p.predicate()
	p.expect(tokenEnd)
	if err := p.finish(); err != nil {
		return nil, err
	}
	return root, nil
}

// Holds reports whether the condition is true for an item, which may be nil. A comparison of
// incompatible types is false and not an error. The error is always nil today.
func (c *Condition) Holds(item value.Item) (bool, error) {
	return c.root.holds(item), nil
}

// Attributes returns the names of the attributes in the condition, each once: those of the item,
// not those of maps in it.
func (c *Condition) Attributes() []string {
	var names []string
	c.root.operands(func(o operand) {
		if o.path != nil && !slices.Contains(names, o.path[0].name) {
			names = append(names, o.path[0].name)
		}
	})
	return names
}

// predicate parses a whole condition.
func (p *parser) predicate() predicate { return p.or(false) }

// alone is an operand without an operator. It is only possible at the start of parentheses, because
// the parentheses of (a) = :v belong to the operand.
type alone struct {
	predicate
	operand operand
	// There are redundant parentheses around it, which matters if it is an operand.
	redundant bool
}

// or parses conditions separated by OR. If bare is true, at the start of parentheses, it may also
// return an operand alone.
func (p *parser) or(bare bool) predicate {
	left := p.and(bare)
	if p.token.kind != tokenOr {
		return left
	}
	all := disjunction{left}
	for p.accept(tokenOr) {
		p.operators++
		all = append(all, p.and(false))
	}
	return all
}

func (p *parser) and(bare bool) predicate {
	left := p.not(bare)
	if p.token.kind != tokenAnd {
		return left
	}
	all := conjunction{left}
	for p.accept(tokenAnd) {
		p.operators++
		all = append(all, p.not(false))
	}
	return all
}

func (p *parser) not(bare bool) predicate {
	if p.accept(tokenNot) {
		p.operators++
		return negation{of: p.not(false)}
	}
	return p.single(bare)
}

// single parses a comparison, a call, or a condition in parentheses.
func (p *parser) single(bare bool) predicate {
	var left operand
	var redundant bool
	switch {
	case p.token.kind == tokenOpen:
		g := p.openGroup()
		within := p.or(true)
		redundant = p.closeGroup(g)
		o, isOperand := within.(alone)
		if !isOperand {
			p.redundant = p.redundant || redundant
			return within
		}
		left, redundant = o.operand, redundant || o.redundant
	case p.token.kind == tokenName && p.next.kind == tokenOpen:
		left = operand{call: p.call(false)}
	default:
		left = p.operand()
	}
	if bare && p.token.kind == tokenClose {
		return alone{operand: left, redundant: redundant}
	}
	isOperand := isComparator(p.token.kind) || p.token.kind == tokenBetween || p.token.kind == tokenIn
	if redundant && (isOperand || left.call != nil) {
		p.redundant = true
	}
	switch {
	case isComparator(p.token.kind):
		return p.comparison(left)
	case p.token.kind == tokenBetween:
		return p.between(left)
	case p.token.kind == tokenIn:
		return p.in(left)
	case left.call != nil:
		if f := left.call.function; f != nil && !f.asWhole {
			p.misplaced(left.call)
		}
		return test{function: left.call.function, args: left.call.operands}
	default:
		p.unexpected()
		return alone{operand: left}
	}
}

func isComparator(kind tokenKind) bool { return tokenEqual <= kind && kind <= tokenGreaterEqual }

func (p *parser) comparison(left operand) predicate {
	operator := p.operator(left)
	right := p.operand()
	name, operands := p.text(operator), []operand{left, right}
	if operator.kind != tokenEqual && operator.kind != tokenNotEqual {
		p.checkTypes(name, operands, "S", "N", "B")
	}
	p.checkDistinct(name, operands)
	return comparison{operator: operator.kind, left: left, right: right}
}

func (p *parser) between(of operand) predicate {
	p.operator(of)
	low := p.operand()
	p.expect(tokenAnd)
	high := p.operand()
	operands := []operand{of, low, high}
	p.checkTypes("BETWEEN", operands, "S", "N", "B")
	p.checkDistinct("BETWEEN", operands)
	p.checkBounds(low.value, high.value)
	return between{of: of, low: low, high: high}
}

// checkBounds refuses known bounds that no value can satisfy.
func (p *parser) checkBounds(low, high types.AttributeValue) {
	if low == nil || high == nil || p.late != nil {
		return
	}
	rule := "requires upper bound to be greater than or equal to lower bound"
	order, same := value.Compare(low, high)
	if !same {
		rule = "requires same data type for lower and upper bounds"
	}
	if !same || order > 0 {
		p.failLate("The BETWEEN operator %s; lower bound operand: %s, upper bound operand: %s", rule, describe(low), describe(high))
	}
}

// describe returns a value in the form of error messages.
func describe(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return "AttributeValue: {S:" + v.Value + "}"
	case *types.AttributeValueMemberN:
		return "AttributeValue: {N:" + v.Value + "}"
	case *types.AttributeValueMemberB:
		return fmt.Sprintf("AttributeValue: {B:java.nio.HeapByteBuffer[pos=0 lim=%d cap=%[1]d]}", len(v.Value))
	default:
		return "AttributeValue: {}"
	}
}

func (p *parser) in(of operand) predicate {
	p.operator(of)
	p.expect(tokenOpen)
	operands := []operand{of}
	for {
		operands = append(operands, p.operand())
		if !p.accept(tokenComma) {
			break
		}
	}
	p.expect(tokenClose)
	p.checkDistinct("IN", operands)
	if n := len(operands) - 1; n > maxIn {
		p.failLate("The IN operator is provided with too many operands; number of operands: %d", n)
	}
	return in{of: of, list: operands[1:]}
}

// operator parses the operator after its first operand.
func (p *parser) operator(left operand) token {
	if left.call != nil && left.call.function != nil && !left.call.function.asOperand {
		p.misplaced(left.call)
	}
	operator := p.token
	p.operators++
	p.advance()
	return operator
}
