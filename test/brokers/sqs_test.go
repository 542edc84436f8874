package brokers

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Admiral-Piett/goaws/app"
	"github.com/Admiral-Piett/goaws/app/router"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/test/docs/howto/forward"
)

const queueName = "orders.fifo"

// queue is a FIFO queue of an emulator of SQS in this process.
type queue struct {
	server *httptest.Server
	down   atomic.Bool
}

func newQueue(t *testing.T) broker {
	logrus.SetOutput(io.Discard)
	emulator := router.New()
	b := &queue{}
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.down.Load() {
			panic(http.ErrAbortHandler) // closes the connection
		}
		emulator.ServeHTTP(w, r)
	}))
	t.Cleanup(b.server.Close)
	app.CurrentEnvironment.EnableDuplicates = true
	require.NoError(t, newSQS(b.address()).call(url.Values{"Action": {"CreateQueue"}, "QueueName": {queueName}}))
	return b
}

func (b *queue) address() string { return b.server.URL }

func (b *queue) outage(d time.Duration) {
	b.down.Store(true)
	defer b.down.Store(false)
	time.Sleep(d)
}

// all reads the memory of the emulator, which is too slow at 100,000 messages otherwise.
func (b *queue) all() (all []*message.Message) {
	app.SyncQueues.RLock()
	defer app.SyncQueues.RUnlock()
	for _, raw := range app.SyncQueues.Queues[queueName].Messages {
		msg := message.NewMessage(raw.MessageAttributes[uuidAttribute].Value, raw.MessageBody)
		for name, value := range raw.MessageAttributes {
			msg.Metadata[name] = value.Value
		}
		all = append(all, msg)
	}
	return all
}

// uuidAttribute is the attribute in which Watermill's Pub/Sub for SQS stores the UUID.
const uuidAttribute = "_watermill_message_uuid"

// sqsPublisher publishes as Watermill's Pub/Sub for SQS does. It sends the requests itself, because
// the emulator does not know the protocol of the current SDK.
type sqsPublisher struct{ address string }

func newSQS(address string) *sqsPublisher { return &sqsPublisher{address} }

func (p *sqsPublisher) Publish(_ string, messages ...*message.Message) error {
	for _, m := range messages {
		attributes := map[string]types.MessageAttributeValue{uuidAttribute: attribute(m.UUID)}
		for key, value := range m.Metadata {
			attributes[key] = attribute(value)
		}
		input := forward.FIFO(&sqs.SendMessageInput{MessageBody: aws.String(string(m.Payload)), MessageAttributes: attributes})
		form := url.Values{
			"Action": {"SendMessage"}, "QueueUrl": {p.address + "/queue/" + queueName}, "MessageBody": {*input.MessageBody},
			"MessageGroupId": {*input.MessageGroupId}, "MessageDeduplicationId": {*input.MessageDeduplicationId},
		}
		for i, name := range slices.Sorted(maps.Keys(attributes)) {
			of := fmt.Sprintf("MessageAttribute.%d.", i+1)
			form.Set(of+"Name", name)
			form.Set(of+"Value.DataType", "String")
			form.Set(of+"Value.StringValue", *attributes[name].StringValue)
		}
		if err := p.call(form); err != nil {
			return err
		}
	}
	return nil
}

func (p *sqsPublisher) call(form url.Values) error {
	response, err := http.PostForm(p.address, form)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return err
}

func attribute(value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
}

func (p *sqsPublisher) Close() error { return nil }
