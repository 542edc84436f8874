package expression

import (
	"bytes"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// predicate is a node of a condition.
type predicate interface {
	holds(item value.Item) bool
	// operands calls a function with each operand below the node.
	operands(func(operand))
}

type (
	conjunction []predicate
	disjunction []predicate
	negation    struct{ of predicate }
	comparison  struct {
		operator    tokenKind
		left, right operand
	}
	between struct{ of, low, high operand }
	in      struct {
		of   operand
		list []operand
	}
	// test is a function that is a condition.
	test struct {
		function *function
		args     []operand
	}
)

func (c conjunction) holds(item value.Item) bool {
	for _, p := range c {
		if !p.holds(item) {
			return false
		}
	}
	return true
}

func (d disjunction) holds(item value.Item) bool {
	for _, p := range d {
		if p.holds(item) {
			return true
		}
	}
	return false
}

func (n negation) holds(item value.Item) bool { return !n.of.holds(item) }

// holds returns false if a side is missing. Sides of different types are only unequal.
func (c comparison) holds(item value.Item) bool {
	left, right := c.left.in(item), c.right.in(item)
	switch c.operator {
	case tokenEqual:
		return left != nil && right != nil && value.Equal(left, right)
	case tokenNotEqual:
		return left == nil || right == nil || !value.Equal(left, right)
	}
	order, ok := value.Compare(left, right)
	return ok && satisfies(order, c.operator)
}

func satisfies(order int, operator tokenKind) bool {
	switch operator {
	case tokenLess:
		return order < 0
	case tokenLessEqual:
		return order <= 0
	case tokenGreater:
		return order > 0
	default:
		return order >= 0
	}
}

func (b between) holds(item value.Item) bool {
	v := b.of.in(item)
	low, ok := value.Compare(b.low.in(item), v)
	if !ok || low > 0 {
		return false
	}
	high, ok := value.Compare(v, b.high.in(item))
	return ok && high <= 0
}

func (i in) holds(item value.Item) bool {
	v := i.of.in(item)
	if v == nil {
		return false
	}
	for _, o := range i.list {
		if other := o.in(item); other != nil && value.Equal(v, other) {
			return true
		}
	}
	return false
}

func (t test) holds(item value.Item) bool {
	v := t.args[0].in(item)
	switch t.function {
	case attributeExists:
		return v != nil
	case attributeNotExists:
		return v == nil
	}
	other := t.args[1].in(item)
	if v == nil || other == nil {
		return false
	}
	switch t.function {
	case attributeType:
		name, ok := other.(*types.AttributeValueMemberS)
		return ok && name.Value == value.Type(v)
	case beginsWith:
		return hasPrefix(v, other)
	default:
		return holdsElement(v, other)
	}
}

func hasPrefix(v, prefix types.AttributeValue) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		prefix, ok := prefix.(*types.AttributeValueMemberS)
		return ok && strings.HasPrefix(v.Value, prefix.Value)
	case *types.AttributeValueMemberB:
		prefix, ok := prefix.(*types.AttributeValueMemberB)
		return ok && bytes.HasPrefix(v.Value, prefix.Value)
	default:
		return false
	}
}

// holdsElement reports whether a set or list has an element, or a string or binary a part.
func holdsElement(v, part types.AttributeValue) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberL:
		for _, e := range v.Value {
			if value.Equal(e, part) {
				return true
			}
		}
		return false
	case *types.AttributeValueMemberNS:
		part, ok := part.(*types.AttributeValueMemberN)
		return ok && has(v.Value, part.Value)
	}
	switch part := part.(type) {
	case *types.AttributeValueMemberS:
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			return strings.Contains(v.Value, part.Value)
		case *types.AttributeValueMemberSS:
			return has(v.Value, part.Value)
		}
	case *types.AttributeValueMemberB:
		switch v := v.(type) {
		case *types.AttributeValueMemberB:
			return bytes.Contains(v.Value, part.Value)
		case *types.AttributeValueMemberBS:
			return hasBytes(v.Value, part.Value)
		}
	}
	return false
}

func has(set []string, element string) bool {
	for _, e := range set {
		if e == element {
			return true
		}
	}
	return false
}

func hasBytes(set [][]byte, element []byte) bool {
	for _, e := range set {
		if bytes.Equal(e, element) {
			return true
		}
	}
	return false
}

func (c conjunction) operands(each func(operand)) {
	for _, p := range c {
		p.operands(each)
	}
}

func (d disjunction) operands(each func(operand)) {
	for _, p := range d {
		p.operands(each)
	}
}

func (n negation) operands(each func(operand)) { n.of.operands(each) }

func (c comparison) operands(each func(operand)) {
	c.left.each(each)
	c.right.each(each)
}

func (b between) operands(each func(operand)) {
	b.of.each(each)
	b.low.each(each)
	b.high.each(each)
}

func (i in) operands(each func(operand)) {
	i.of.each(each)
	for _, o := range i.list {
		o.each(each)
	}
}

func (t test) operands(each func(operand)) {
	for _, o := range t.args {
		o.each(each)
	}
}

// each calls a function with the operand and the operands of its call.
func (o operand) each(f func(operand)) {
	f(o)
	if o.call != nil {
		for _, arg := range o.call.operands {
			arg.each(f)
		}
	}
}
