package expression

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/number"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// change returns the change that the action makes to an item.
func (a *action) change(item value.Item) (change, error) {
	if !canWrite(a.target, item) {
		return change{}, invalidPath()
	}
	switch a.section {
	case tokenRemove:
		return change{kind: remove}, nil
	case tokenSet:
		v, err := a.newValue(item)
		return change{kind: put, value: v}, err
	case tokenAdd:
		v, err := add(a.target.in(item), a.left.value)
		return change{kind: put, value: v}, err
	default:
		return without(a.target.in(item), a.left.value)
	}
}

// canWrite reports whether the last element of a path has a map or list to be in.
func canWrite(target path, item value.Item) bool {
	last := len(target) - 1
	if last == 0 {
		return true
	}
	switch target[:last].in(item).(type) {
	case *types.AttributeValueMemberM:
		return !target[last].isIndex()
	case *types.AttributeValueMemberL:
		return target[last].isIndex()
	default:
		return false
	}
}

// newValue returns the value of the right-hand side of SET.
func (a *action) newValue(item value.Item) (types.AttributeValue, error) {
	left, err := a.left.newValue(item)
	if err != nil || a.operator == tokenEnd {
		return left, err
	}
	one, err := numberIn(left)
	if err != nil {
		return nil, err
	}
	right, err := a.right.newValue(item)
	if err != nil {
		return nil, err
	}
	two, err := numberIn(right)
	if err != nil {
		return nil, err
	}
	calculate := number.Add
	if a.operator == tokenMinus {
		calculate = number.Sub
	}
	result, err := calculate(one, two)
	if err != nil {
		return nil, err
	}
	return &types.AttributeValueMemberN{Value: result.String()}, nil
}

// newValue returns the value of an operand of SET. Unlike in a condition, it must exist.
func (o operand) newValue(item value.Item) (types.AttributeValue, error) {
	switch {
	case o.path != nil:
		v := o.path.in(item)
		if v == nil {
			return nil, missingAttribute()
		}
		return v, nil
	case o.call == nil:
		return o.value, nil
	case o.call.function == ifNotExists:
		// DynamoDB evaluates both, and fails if the default is missing even if it is not needed.
		otherwise, err := o.call.operands[1].newValue(item)
		if v := o.call.operands[0].path.in(item); v != nil && err == nil {
			return v, nil
		}
		return otherwise, err
	default:
		return appended(o.call.operands, item)
	}
}

// appended returns the result of list_append.
func appended(lists []operand, item value.Item) (types.AttributeValue, error) {
	var all []types.AttributeValue
	for _, o := range lists {
		v, err := o.newValue(item)
		if err != nil {
			return nil, err
		}
		list, ok := v.(*types.AttributeValueMemberL)
		if !ok {
			return nil, wrongOperand()
		}
		all = append(all, list.Value...)
	}
	return &types.AttributeValueMemberL{Value: all}, nil
}

func numberIn(v types.AttributeValue) (number.Number, error) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return number.Number{}, wrongOperand()
	}
	return number.Parse(n.Value)
}

// add returns the result of ADD: a sum or a union of sets. v is nil if there is no value.
func add(v, operand types.AttributeValue) (types.AttributeValue, error) {
	if v == nil {
		return operand, nil
	}
	switch operand := operand.(type) {
	case *types.AttributeValueMemberN:
		one, err := numberIn(v)
		if err != nil {
			return nil, err
		}
		two, err := numberIn(operand)
		if err != nil {
			return nil, err
		}
		sum, err := number.Add(one, two)
		return &types.AttributeValueMemberN{Value: sum.String()}, err
	case *types.AttributeValueMemberSS:
		if v, ok := v.(*types.AttributeValueMemberSS); ok {
			return &types.AttributeValueMemberSS{Value: union(v.Value, operand.Value, has)}, nil
		}
	case *types.AttributeValueMemberNS:
		if v, ok := v.(*types.AttributeValueMemberNS); ok {
			return &types.AttributeValueMemberNS{Value: union(v.Value, operand.Value, has)}, nil
		}
	case *types.AttributeValueMemberBS:
		if v, ok := v.(*types.AttributeValueMemberBS); ok {
			return &types.AttributeValueMemberBS{Value: union(v.Value, operand.Value, hasBytes)}, nil
		}
	}
	return nil, wrongOperand()
}

// without returns the result of DELETE. v is nil if there is no value. A set that loses all
// elements is removed, because there are no empty sets.
func without(v, operand types.AttributeValue) (change, error) {
	if v == nil {
		return change{}, nil
	}
	var rest types.AttributeValue
	left := 0
	switch v := v.(type) {
	case *types.AttributeValueMemberSS:
		if operand, ok := operand.(*types.AttributeValueMemberSS); ok {
			set := difference(v.Value, operand.Value, has)
			rest, left = &types.AttributeValueMemberSS{Value: set}, len(set)
		}
	case *types.AttributeValueMemberNS:
		if operand, ok := operand.(*types.AttributeValueMemberNS); ok {
			set := difference(v.Value, operand.Value, has)
			rest, left = &types.AttributeValueMemberNS{Value: set}, len(set)
		}
	case *types.AttributeValueMemberBS:
		if operand, ok := operand.(*types.AttributeValueMemberBS); ok {
			set := difference(v.Value, operand.Value, hasBytes)
			rest, left = &types.AttributeValueMemberBS{Value: set}, len(set)
		}
	}
	switch {
	case rest == nil:
		return change{}, wrongOperand()
	case left == 0:
		return change{kind: remove}, nil
	default:
		return change{kind: put, value: rest}, nil
	}
}

func union[E any](a, b []E, has func([]E, E) bool) []E {
	out := slices.Clone(a)
	for _, e := range b {
		if !has(a, e) {
			out = append(out, e)
		}
	}
	return out
}

func difference[E any](a, b []E, has func([]E, E) bool) []E {
	out := make([]E, 0, len(a))
	for _, e := range a {
		if !has(b, e) {
			out = append(out, e)
		}
	}
	return out
}
