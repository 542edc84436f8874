package table

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// target describes an action of any of the four kinds.
type target struct {
	Kind, Table string
	Key, values Item
}

// TargetOf returns what an action writes. It returns false unless the action is of exactly one
// kind.
func TargetOf(w types.TransactWriteItem) (target, bool) {
	var found []target
	if a := w.Put; a != nil {
		found = append(found, target{"Put", aws.ToString(a.TableName), a.Item, a.ExpressionAttributeValues})
	}
	if a := w.Update; a != nil {
		found = append(found, target{"Update", aws.ToString(a.TableName), a.Key, a.ExpressionAttributeValues})
	}
	if a := w.Delete; a != nil {
		found = append(found, target{"Delete", aws.ToString(a.TableName), a.Key, a.ExpressionAttributeValues})
	}
	if a := w.ConditionCheck; a != nil {
		found = append(found, target{"ConditionCheck", aws.ToString(a.TableName), a.Key, a.ExpressionAttributeValues})
	}
	if len(found) != 1 {
		return target{}, false
	}
	return found[0], true
}

// WriteSize returns the known part of an action's size. The size of an updated item is not known.
func WriteSize(w types.TransactWriteItem) int {
	t, _ := TargetOf(w)
	return ItemSize(t.Key) + ItemSize(t.values)
}
