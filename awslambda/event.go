package awslambda

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/wakeup"
)

// work is what an event of Lambda asks for.
type work struct {
	sweep    bool
	hints    map[aggregate.ID]uint64 // the highest version of each aggregate
	commands []incoming

	queued  int      // the number of messages of SQS
	wakeups []string // the ids of those that are wake-ups
}

// incoming is a message of SQS or SNS.
type incoming struct {
	id    string // of SQS, or of SNS
	order string // the message group of a FIFO queue, or empty
	*message.Message
}

// event has the fields of all events of Lambda that a [Function] handles. The chapter "Integrating
// other services" of the AWS Lambda developer guide documents them.
type event struct {
	Records    []record
	DetailType string `json:"detail-type"` // of a schedule
}

// record is a record of a stream, a message of SQS, or one of SNS. The names in events of SNS begin
// with capitals. [json.Unmarshal] ignores case.
type record struct {
	EventSource    string `json:"eventSource"`
	EventSourceARN string `json:"eventSourceARN"`

	EventName string `json:"eventName"`
	DynamoDB  struct {
		Keys map[string]struct{ S, N *string }
	} `json:"dynamodb"`

	MessageID         string            `json:"messageId"`
	Body              string            `json:"body"`
	Attributes        map[string]string `json:"attributes"`
	MessageAttributes map[string]struct {
		StringValue string `json:"stringValue"`
		BinaryValue []byte `json:"binaryValue"`
	} `json:"messageAttributes"`

	SNS notification `json:"Sns"`
}

// notification is a message of SNS. It is also the body of a message of SQS that comes by a
// subscription to SNS without raw message delivery.
type notification struct {
	Type              string
	TopicARN          string `json:"TopicArn"`
	MessageID         string `json:"MessageId"`
	Message           string
	MessageAttributes map[string]struct{ Type, Value string }
}

// read returns the work of an event.
func (f *Function) read(payload []byte) (work, error) {
	w := work{hints: map[aggregate.ID]uint64{}}
	var e event
	if err := json.Unmarshal(payload, &e); err != nil {
		return w, &EventError{"decode the event: " + err.Error()}
	}
	if len(e.Records) == 0 {
		if w.sweep = e.DetailType == scheduled; !w.sweep {
			return w, &EventError{fmt.Sprintf("the event is neither of a stream of DynamoDB, SQS or SNS, nor a schedule, which has the detail-type %q", scheduled)}
		}
	}
	for _, r := range e.Records {
		var err error
		switch r.EventSource {
		case "aws:dynamodb":
			err = f.readChange(&w, r)
		case "aws:sqs":
			w.queued++
			f.readMessage(&w, r)
		case "aws:sns":
			f.readNotification(&w, r.SNS, incoming{id: r.SNS.MessageID})
		default:
			err = &EventError{"the source " + printable.Quote(r.EventSource) + " is none of aws:dynamodb, aws:sqs and aws:sns"}
		}
		if err != nil {
			return w, err
		}
	}
	return w, nil
}

const scheduled = "Scheduled Event"

// readChange adds a record of the stream of the journal table.
func (f *Function) readChange(w *work, r record) error {
	own := f.config.Journal.Config().Tables.Journal
	if _, resource, _ := strings.Cut(r.EventSourceARN, ":table/"); !strings.HasPrefix(resource, own+"/") {
		return &EventError{fmt.Sprintf("a record is of the stream %s; the journal table is %s", printable.Quote(r.EventSourceARN), own)}
	}
	if r.EventName == "REMOVE" {
		return nil
	}
	key := map[string]types.AttributeValue{}
	for name, value := range r.DynamoDB.Keys {
		switch {
		case value.S != nil:
			key[name] = &types.AttributeValueMemberS{Value: *value.S}
		case value.N != nil:
			key[name] = &types.AttributeValueMemberN{Value: *value.N}
		}
	}
	if id, number, ok := f.config.Journal.Internal().EventOf(key); ok {
		w.hint(id, number)
	}
	return nil
}

func (w *work) hint(id aggregate.ID, version uint64) { w.hints[id] = max(w.hints[id], version) }

// uuidAttribute is the attribute in which the publishers of watermill-aws send the UUID of a
// message.
const uuidAttribute = "_watermill_message_uuid"

// readMessage adds a message of SQS.
func (f *Function) readMessage(w *work, r record) {
	m := incoming{id: r.MessageID}
	if strings.HasSuffix(r.EventSourceARN, ".fifo") {
		m.order = r.Attributes["MessageGroupId"]
	}
	// A command may look like a notification. SNS sets all of these fields, and puts the attributes
	// into the body.
	var n notification
	if len(r.MessageAttributes) == 0 && json.Unmarshal([]byte(r.Body), &n) == nil &&
		n.Type == "Notification" && n.MessageID != "" && strings.HasPrefix(n.TopicARN, "arn:") {
		f.readNotification(w, n, m)
		return
	}
	metadata := message.Metadata{}
	for name, value := range r.MessageAttributes {
		metadata[name] = value.StringValue
		if value.BinaryValue != nil {
			metadata[name] = string(value.BinaryValue)
		}
	}
	f.add(w, m, r.MessageID, r.Body, metadata)
}

// readNotification adds a message of SNS, which came directly or as m of SQS.
func (f *Function) readNotification(w *work, n notification, m incoming) {
	metadata := message.Metadata{}
	for name, value := range n.MessageAttributes {
		metadata[name] = value.Value
		if binary, err := base64.StdEncoding.DecodeString(value.Value); value.Type == "Binary" && err == nil {
			metadata[name] = string(binary)
		}
	}
	f.add(w, m, n.MessageID, n.Message, metadata)
}

// add adds a message: a wake-up or a command.
func (f *Function) add(w *work, m incoming, id, payload string, metadata message.Metadata) {
	versions, err := wakeup.Read(f.config.Journal, []byte(payload))
	if errors.Is(err, wakeup.ErrNoWakeup) {
		if uuid := metadata[uuidAttribute]; uuid != "" {
			id = uuid
			delete(metadata, uuidAttribute)
		}
		m.Message = message.NewMessage(id, []byte(payload))
		m.Metadata = metadata
		w.commands = append(w.commands, m)
		return
	}
	for id, version := range versions { // none if it is about another journal
		w.hint(id, version)
	}
	w.wakeups = append(w.wakeups, m.id)
}
