package forward

import (
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/millrace-dev/millrace/forward"
)

// FIFO sets what a FIFO queue needs from the attributes of a message. The Pub/Sub for SQS calls it
// in GenerateSendMessageInput, and stores the UUID of the message in this attribute.
func FIFO(input *sqs.SendMessageInput) *sqs.SendMessageInput {
	input.MessageGroupId = input.MessageAttributes[forward.KeyKey].StringValue
	input.MessageDeduplicationId = input.MessageAttributes["_watermill_message_uuid"].StringValue
	return input
}
