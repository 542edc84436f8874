package checkpoint

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
)

// Same reports whether both describe the same decision to stop a group.
func (why *Stopped) Same(other Stopped) bool {
	return why != nil && why.Aggregate == other.Aggregate && why.Number == other.Number && why.At.UnixMilli() == other.At.UnixMilli()
}

func stoppedValue(why Stopped) types.AttributeValue {
	value := item{
		attrID: text(why.Aggregate.Value), attrNumber: number(why.Number), attrStoppedAt: number(why.At.UnixMilli()),
		attrReason: text(Bounded(why.Reason)),
	}
	if why.EventType != "" {
		value[attrEventType] = text(Bounded(why.EventType))
	}
	return &types.AttributeValueMemberM{Value: value}
}

func stoppedOf(topic string, value item) (*Stopped, error) {
	why := Stopped{
		Aggregate: aggregate.ID{Type: topic, Value: textOf(value[attrID])},
		EventType: textOf(value[attrEventType]), Reason: textOf(value[attrReason]),
	}
	var errs [2]error
	why.Number, errs[0] = uintOf(value[attrNumber])
	why.At, errs[1] = timeOf(value[attrStoppedAt])
	return &why, errors.Join(errs[:]...)
}
