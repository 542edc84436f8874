package expression

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// KeyCondition is a key condition expression.
type KeyCondition struct {
	root predicate
}

// Key is a key attribute of a table or an index.
type Key struct {
	Name string
	Type types.ScalarAttributeType
}

// Range is the range that a query reads: one partition, and a range of its sort keys. Without
// bounds and a prefix it is the whole partition.
type Range struct {
	Partition types.AttributeValue

	// Bounds of the sort key; nil for no bound. An exclusive bound is not in the range itself.
	Low, High                   types.AttributeValue
	Equal                       bool // the condition was for one value
	LowExclusive, HighExclusive bool

	// Prefix, a string or binary, is the required prefix of the sort key. There are no bounds then.
	Prefix types.AttributeValue
}

// ParseKeyCondition parses a key condition. For checks it against a table.
func ParseKeyCondition(source string, a *Attributes) (*KeyCondition, error) {
	root, err := parsePredicate("KeyConditionExpression", source, a)
	if err != nil {
		return nil, err
	}
	return &KeyCondition{root: root}, nil
}

// keyTest is the condition on one key.
type keyTest struct {
	name      string
	operator  tokenKind // a comparator, tokenBetween or tokenEnd for begins_with
	low, high types.AttributeValue
}

// For returns the range for the key of a table or an index. sort is nil if there is no sort key. It
// returns an error if a query cannot have the condition. A query needs an equality for the
// partition key and at most one condition on the sort key, in either order. Values must have the
// types of the keys and must not be empty.
func (k *KeyCondition) For(partition Key, sort *Key) (Range, error) {
	if err := k.checkNesting(partition, sort); err != nil {
		return Range{}, err
	}
	var tests []keyTest
	if err := collect(k.root, &tests); err != nil {
		return Range{}, err
	}
	switch {
	case len(tests) > 2:
		return Range{}, apierror.Validation("Conditions can be of length 1 or 2 only")
	case len(tests) == 2 && sort == nil:
		return Range{}, notSupported()
	}
	hash, err := find(tests, partition)
	if err != nil {
		return Range{}, err
	}
	if hash.operator != tokenEqual {
		return Range{}, notSupported()
	}
	if err := hash.checkEmpty(); err != nil {
		return Range{}, err
	}
	r := Range{Partition: hash.low}
	if len(tests) == 1 {
		return r, nil
	}
	test, err := find(tests, *sort)
	if err != nil {
		return Range{}, err
	}
	if err := test.checkEmpty(); err != nil {
		return Range{}, err
	}
	test.narrow(&r)
	return r, nil
}

// checkNesting refuses document paths into keys.
func (k *KeyCondition) checkNesting(partition Key, sort *Key) (err error) {
	k.root.operands(func(o operand) {
		switch {
		case err != nil || len(o.path) <= 1:
		case o.path[0].name == partition.Name || sort != nil && o.path[0].name == sort.Name:
			err = apierror.Validation("Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: %s", o.path[0].name)
		}
	})
	return err
}

// collect finds the parts of a key condition.
func collect(p predicate, tests *[]keyTest) error {
	switch p := p.(type) {
	case conjunction:
		for _, part := range p {
			if err := collect(part, tests); err != nil {
				return err
			}
		}
		return nil
	case comparison:
		if p.operator == tokenNotEqual {
			return invalidOperator("<>")
		}
		if p.left.path == nil { // :v < a is a > :v
			p.left, p.right, p.operator = p.right, p.left, mirrored(p.operator)
		}
		return appendTest(tests, p.operator, "", p.left, p.right)
	case between:
		return appendTest(tests, tokenBetween, "BETWEEN", p.of, p.low, p.high)
	case test:
		if p.function != beginsWith {
			return invalidOperator(p.function.name)
		}
		return appendTest(tests, tokenEnd, beginsWith.name, p.args...)
	case in:
		return invalidOperator("IN")
	case disjunction:
		return invalidOperator("OR")
	default:
		return invalidOperator("NOT")
	}
}

// appendTest adds the test of an operator. If name is set, the key must be the first operand.
func appendTest(tests *[]keyTest, operator tokenKind, name string, operands ...operand) error {
	paths := 0
	for _, o := range operands {
		switch {
		case o.call != nil:
			return apierror.Validation("KeyConditionExpressions cannot contain nested operations")
		case o.path != nil:
			paths++
		}
	}
	switch {
	case name != "" && operands[0].path == nil:
		return apierror.Validation("Invalid condition in KeyConditionExpression: %s operator must have the key attribute as its first operand", name)
	case paths > 1:
		return apierror.Validation("Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition")
	case paths == 0:
		return apierror.Validation("Invalid condition in KeyConditionExpression: No key attribute specified")
	case len(operands[0].path) > 1:
		return apierror.Validation("KeyConditionExpressions cannot have conditions on nested attributes")
	}
	t := keyTest{name: operands[0].path[0].name, operator: operator, low: operands[1].value}
	if len(operands) > 2 {
		t.high = operands[2].value
	}
	for _, other := range *tests {
		if other.name == t.name {
			return apierror.Validation("KeyConditionExpressions must only contain one condition per key")
		}
	}
	*tests = append(*tests, t)
	return nil
}

func mirrored(operator tokenKind) tokenKind {
	switch operator {
	case tokenLess:
		return tokenGreater
	case tokenLessEqual:
		return tokenGreaterEqual
	case tokenGreater:
		return tokenLess
	case tokenGreaterEqual:
		return tokenLessEqual
	default:
		return operator
	}
}

// find returns the test of a key. Its values must have the type of the key.
func find(tests []keyTest, key Key) (keyTest, error) {
	for _, t := range tests {
		if t.name != key.Name {
			continue
		}
		if value.Type(t.low) != string(key.Type) || t.high != nil && value.Type(t.high) != string(key.Type) {
			return keyTest{}, apierror.Validation("One or more parameter values were invalid: Condition parameter type does not match schema type")
		}
		return t, nil
	}
	return keyTest{}, apierror.Validation("Query condition missed key schema element: %s", key.Name)
}

func (t keyTest) checkEmpty() error {
	for _, v := range []types.AttributeValue{t.low, t.high} {
		kind := ""
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			if v.Value == "" {
				kind = "string"
			}
		case *types.AttributeValueMemberB:
			if len(v.Value) == 0 {
				kind = "binary"
			}
		}
		if kind != "" {
			return apierror.Validation("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", kind, t.name)
		}
	}
	return nil
}

// narrow sets the bounds of a range to those of a test of the sort key.
func (t keyTest) narrow(r *Range) {
	switch t.operator {
	case tokenEqual:
		r.Low, r.High, r.Equal = t.low, t.low, true
	case tokenBetween:
		r.Low, r.High = t.low, t.high
	case tokenLess, tokenLessEqual:
		r.High, r.HighExclusive = t.low, t.operator == tokenLess
	case tokenGreater, tokenGreaterEqual:
		r.Low, r.LowExclusive = t.low, t.operator == tokenGreater
	default:
		r.Prefix = t.low
	}
}

func notSupported() error { return apierror.Validation("Query key condition not supported") }

func invalidOperator(name string) error {
	return apierror.Validation("Invalid operator used in KeyConditionExpression: %s", name)
}
