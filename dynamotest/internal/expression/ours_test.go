package expression_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/expression"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

func attributesOf(source string) *expression.Attributes {
	return expression.NewAttributes(placeholders(source))
}

func ourCondition(source string) string {
	a := attributesOf(source)
	c, err := expression.ParseCondition("ConditionExpression", source, a)
	if err == nil {
		err = a.CheckUsed()
	}
	if err != nil {
		return message(err)
	}
	holds, err := c.Holds(fixture)
	if err != nil {
		return message(err)
	}
	return fmt.Sprint(holds)
}

func ourUpdate(source string) string {
	u, err := expression.ParseUpdate(source, attributesOf(source))
	if err != nil {
		return message(err)
	}
	item, err := u.Apply(fixture)
	if err != nil {
		return message(err)
	}
	return showChanges(item)
}

func ourProjection(source string) string {
	p, err := expression.ParseProjection(source, attributesOf(source))
	if err != nil {
		return message(err)
	}
	return showItem(p.Apply(fixture))
}

// sortKeys are the sort keys of the table for key conditions, by type. There is one partition.
var sortKeys = map[types.ScalarAttributeType][]types.AttributeValue{
	types.ScalarAttributeTypeS: {s("a"), s("ab"), s("b"), s("x"), s("xy")},
	types.ScalarAttributeTypeN: {n("-1"), n("1"), n("3"), n("5"), n("10")},
	types.ScalarAttributeTypeB: {b("a"), b("ab"), b("b")},
}

// ourKeyCondition returns the evaluator for a table with a sort key of a type, or without one.
func ourKeyCondition(sortType types.ScalarAttributeType) evaluator {
	return func(source string) string {
		c, err := expression.ParseKeyCondition(source, attributesOf(source))
		if err != nil {
			return message(err)
		}
		var sort *expression.Key
		if sortType != "" {
			sort = &expression.Key{Name: "sk", Type: sortType}
		}
		r, err := c.For(expression.Key{Name: "pk", Type: types.ScalarAttributeTypeS}, sort)
		if err != nil {
			return message(err)
		}
		var found []string
		for _, v := range sortKeys[sortType] {
			if value.Equal(r.Partition, s("k")) && within(r, v) {
				found = append(found, show(v))
			}
		}
		return strings.Join(found, " ")
	}
}

func within(r expression.Range, v types.AttributeValue) bool {
	if r.Low != nil {
		if order, ok := value.Compare(v, r.Low); !ok || order < 0 || order == 0 && r.LowExclusive {
			return false
		}
	}
	if r.High != nil {
		if order, ok := value.Compare(v, r.High); !ok || order > 0 || order == 0 && r.HighExclusive {
			return false
		}
	}
	switch prefix := r.Prefix.(type) {
	case *types.AttributeValueMemberS:
		return strings.HasPrefix(v.(*types.AttributeValueMemberS).Value, prefix.Value)
	case *types.AttributeValueMemberB:
		return bytes.HasPrefix(v.(*types.AttributeValueMemberB).Value, prefix.Value)
	default:
		return true
	}
}
