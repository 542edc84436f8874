package machine

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// event returns the payload for a batch. Only keys are supported, the view type KEYS_ONLY.
func (m *Mapping) event(batch []types.Record) []byte {
	var event events.DynamoDBEvent
	for _, r := range batch {
		keys := map[string]events.DynamoDBAttributeValue{}
		for name, value := range r.Dynamodb.Keys {
			keys[name] = keyOf(value)
		}
		event.Records = append(event.Records, events.DynamoDBEventRecord{
			AWSRegion: Region, EventID: aws.ToString(r.EventID), EventName: string(r.EventName), EventSource: "aws:dynamodb", EventVersion: "1.1",
			EventSourceArn: m.config.Stream,
			Change: events.DynamoDBStreamRecord{
				ApproximateCreationDateTime: events.SecondsEpochTime{Time: aws.ToTime(r.Dynamodb.ApproximateCreationDateTime)},
				Keys:                        keys, SequenceNumber: aws.ToString(r.Dynamodb.SequenceNumber),
				SizeBytes: aws.ToInt64(r.Dynamodb.SizeBytes), StreamViewType: string(r.Dynamodb.StreamViewType),
			},
		})
	}
	payload, err := json.Marshal(event)
	if err != nil {
		panic(fmt.Sprintf("encode an event: %v", err)) // it has only strings, numbers and bytes
	}
	return payload
}

func keyOf(value types.AttributeValue) events.DynamoDBAttributeValue {
	switch value := value.(type) {
	case *types.AttributeValueMemberN:
		return events.NewNumberAttribute(value.Value)
	case *types.AttributeValueMemberB:
		return events.NewBinaryAttribute(value.Value)
	case *types.AttributeValueMemberS:
		return events.NewStringAttribute(value.Value)
	default:
		return events.NewNullAttribute() // a key has no other type
	}
}
