package awslambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/awslambda"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/wakeup"
)

func order(id string) aggregate.ID { return aggregate.ID{Type: "order", Value: id} }

// world records the bursts of a function.
type world struct {
	*testing.T
	db       *dynamotest.DB
	journal  *journal.Journal
	function *awslambda.Function
	metrics  bytes.Buffer

	mu     sync.Mutex
	bursts []map[aggregate.ID]uint64
	left   subscriber.Left
	err    error
}

func setup(t *testing.T, layout journal.Layout, commands message.NoPublishHandlerFunc) *world {
	t.Helper()
	w := &world{T: t, db: dynamotest.New(t)}
	config := journal.Config{Layout: layout, Shards: 4}
	require.NoError(t, journal.Create(t.Context(), w.db.Client(), config))
	var err error
	w.journal, err = journal.Open(t.Context(), w.db.Client(), config)
	require.NoError(t, err)
	w.function, err = awslambda.New(awslambda.Config{Journal: w.journal, CatchUp: w.catchUp, Commands: commands, Metrics: &w.metrics}, nil)
	require.NoError(t, err)
	return w
}

func (w *world) catchUp(_ context.Context, hints ...subscriber.Hint) (subscriber.Left, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	burst := map[aggregate.ID]uint64{}
	for _, h := range hints {
		burst[h.Aggregate] = h.Version
	}
	w.bursts = append(w.bursts, burst)
	return w.left, w.err
}

// took returns the bursts since the last call.
func (w *world) took() []map[aggregate.ID]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	bursts := w.bursts
	w.bursts = nil
	return bursts
}

func (w *world) invoke(event any) (string, error) {
	w.Helper()
	payload, err := json.Marshal(event)
	require.NoError(w, err)
	reply, err := w.function.Invoke(w.Context(), payload)
	return string(reply), err
}

type object = map[string]any

func records(all ...object) object { return object{"Records": all} }

// changes returns the records of the stream for all items of the journal table.
func (w *world) changes(event string) (all []object) {
	w.Helper()
	const table = "journal"
	for page := dynamodb.NewScanPaginator(w.db.Client(), &dynamodb.ScanInput{TableName: ptr(table)}); page.HasMorePages(); {
		found, err := page.NextPage(w.Context())
		require.NoError(w, err)
		for _, it := range found.Items {
			all = append(all, change(event, table, object{"pkey": valueOf(it["pkey"]), "skey": valueOf(it["skey"])}))
		}
	}
	return all
}

func ptr[T any](v T) *T { return &v }

func valueOf(v types.AttributeValue) object {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		return object{"N": v.Value}
	case *types.AttributeValueMemberS:
		return object{"S": v.Value}
	}
	return nil
}

func change(event, table string, keys object) object {
	return object{
		"eventID": "1", "eventName": event, "eventSource": "aws:dynamodb", "awsRegion": "eu-west-1",
		"eventSourceARN": "arn:aws:dynamodb:eu-west-1:123456789012:table/" + table + "/stream/2026-11-29T00:00:00.000",
		"dynamodb":       object{"Keys": keys, "SequenceNumber": "4421584500000000017450439091", "StreamViewType": "KEYS_ONLY"},
	}
}

func TestRecordsOfTheStreamAreHints(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()
			w := setup(t, layout, nil)
			want := map[aggregate.ID]uint64{}
			for n, id := range []string{"1", "a-b-2", "x/3"} {
				for v := range n + 1 {
					testjournal.Append(t, w.journal, storage.Commit{
						Aggregate: order(id), Expected: uint64(v), CommandID: fmt.Sprint("command ", v),
						Events: []storage.Event{{Type: "placed", Payload: []byte("x")}},
					})
				}
				want[order(id)] = uint64(n + 1)
			}
			for _, event := range []string{"INSERT", "MODIFY"} {
				reply, err := w.invoke(records(w.changes(event)...))
				require.NoError(t, err)
				assert.JSONEq(t, `{"batchItemFailures":[]}`, reply)
				assert.Equal(t, []map[aggregate.ID]uint64{want}, w.took(), "one burst, the last event of each")
			}
			reply, err := w.invoke(records(w.changes("REMOVE")...))
			require.NoError(t, err)
			assert.JSONEq(t, `{"batchItemFailures":[]}`, reply)
			assert.Empty(t, w.took(), "a burst without hints would be a sweep")

			w.err = errors.New("throttled")
			_, err = w.invoke(records(w.changes("INSERT")...))
			require.ErrorIs(t, err, w.err, "Lambda repeats the batch")
		})
	}
}

func TestAScheduleIsASweep(t *testing.T) {
	t.Parallel()
	w := setup(t, journal.Packed, nil)
	due := time.Date(2026, 11, 29, 1, 2, 3, 0, time.UTC)
	w.left = subscriber.Left{Aggregates: 2, Due: due}
	event := object{"version": "0", "source": "aws.scheduler", "detail-type": "Scheduled Event", "detail": object{}}
	reply, err := w.invoke(event)
	require.NoError(t, err)
	assert.JSONEq(t, `{"left":2,"due":"2026-11-29T01:02:03Z"}`, reply)
	assert.Equal(t, []map[aggregate.ID]uint64{{}}, w.took())

	w.err = errors.New("throttled")
	_, err = w.invoke(event)
	require.ErrorIs(t, err, w.err)
}

func TestEventsThatNoTriggerSendsAreRefused(t *testing.T) {
	t.Parallel()
	w := setup(t, journal.Packed, nil)
	for _, payload := range []string{
		``, `null`, `{}`, `[]`, `{"Records":[]}`, `{"Records":{}}`, `{"Records":[{}]}`, `{"Records":[null]}`, `"Scheduled Event"`,
		`{"detail-type":"Object Created"}`, `{"version":"2.0","requestContext":{"http":{}}}`,
		`{"Records":[{"eventSource":"aws:s3"}]}`, `{"Records":[{"eventSource":"aws:dynamodb","eventName":"INSERT"}]}`,
	} {
		_, err := w.function.Invoke(t.Context(), []byte(payload))
		require.ErrorAs(t, err, new(*awslambda.EventError), payload)
	}
	_, err := w.invoke(records(change("INSERT", "staging-journal", object{"pkey": object{"S": "order/1"}, "skey": object{"N": "1"}})))
	require.ErrorContains(t, err, "staging-journal")
	assert.Empty(t, w.took())

	_, err = awslambda.New(awslambda.Config{CatchUp: w.catchUp}, nil)
	require.ErrorContains(t, err, "Config.Journal")
	_, err = awslambda.New(awslambda.Config{Journal: w.journal}, nil)
	require.ErrorContains(t, err, "Config.CatchUp")
}

const (
	wakeup1  = `{"journal":"journal","versions":{"order":{"1":3,"2":1}}}`
	wakeup2  = `{"journal":"journal","versions":{"order":{"1":2},"parcel":{"9":1},"":{"1":1}}}`
	stranger = `{"journal":"staging-journal","versions":{"order":{"1":3}}}`
)

func queued(id, body string) object {
	return object{"messageId": id, "body": body, "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:work"}
}

func notified(message string) object {
	return object{"EventSource": "aws:sns", "EventVersion": "1.0", "Sns": object{"Type": "Notification", "MessageId": "n-1", "Message": message}}
}

// enveloped returns the body of a message of SQS that came from SNS without raw delivery.
func enveloped(t *testing.T, message string, attributes object) string {
	t.Helper()
	body, err := json.Marshal(object{"Type": "Notification", "TopicArn": "arn:aws:sns:eu-west-1:123456789012:work", "MessageId": "n-2", "Message": message, "MessageAttributes": attributes})
	require.NoError(t, err)
	return string(body)
}

func TestWakeUpsAreHints(t *testing.T) {
	t.Parallel()
	w := setup(t, journal.Packed, nil)
	both := map[aggregate.ID]uint64{order("1"): 3, order("2"): 1, {Type: "parcel", Value: "9"}: 1}
	for _, event := range []object{
		records(notified(wakeup1), notified(wakeup2)),
		records(queued("1", wakeup2), queued("2", wakeup1), queued("3", stranger)),
		records(queued("1", enveloped(t, wakeup1, nil)), queued("2", enveloped(t, wakeup2, object{}))),
	} {
		reply, err := w.invoke(event)
		require.NoError(t, err)
		assert.JSONEq(t, `{"batchItemFailures":[]}`, reply)
		assert.Equal(t, []map[aggregate.ID]uint64{both}, w.took())
	}
	_, err := w.invoke(records(notified(stranger)))
	require.NoError(t, err)
	assert.Empty(t, w.took(), "a burst without hints would be a sweep")

	w.err = errors.New("throttled")
	_, err = w.invoke(records(queued("1", wakeup1), queued("2", wakeup2)))
	require.ErrorIs(t, err, w.err)
	_, err = w.invoke(records(notified(wakeup1)))
	require.ErrorIs(t, err, w.err)
}

// heard records the commands of a function.
type heard struct {
	mu   sync.Mutex
	all  []string
	fail map[string]bool // by payload
}

func (h *heard) command(msg *message.Message) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	text := string(msg.Payload)
	h.all = append(h.all, text)
	if h.fail[text] {
		return errors.New("refuses " + text)
	}
	if text == "panic" {
		panic("a handler")
	}
	return nil
}

func failures(ids ...string) string {
	for n, id := range ids {
		ids[n] = `{"itemIdentifier":"` + id + `"}`
	}
	return `{"batchItemFailures":[` + strings.Join(ids, ",") + `]}`
}

func TestMessagesThatFailAreNamed(t *testing.T) {
	t.Parallel()
	h := &heard{fail: map[string]bool{"bad": true}}
	w := setup(t, journal.Packed, h.command)
	reply, err := w.invoke(records(queued("1", "good"), queued("2", "bad"), queued("3", "panic"), queued("4", ""), queued("5", wakeup1)))
	require.NoError(t, err)
	assert.JSONEq(t, failures("2", "3"), reply)
	assert.ElementsMatch(t, []string{"good", "bad", "panic", ""}, h.all)
	assert.Len(t, w.took(), 1)

	w.err = errors.New("throttled")
	reply, err = w.invoke(records(queued("1", "good"), queued("2", "bad"), queued("5", wakeup1)))
	require.NoError(t, err, "the good one must not be repeated")
	assert.JSONEq(t, failures("2", "5"), reply)

	_, err = w.invoke(records(queued("1", "bad"), queued("2", "bad")))
	require.ErrorContains(t, err, "refuses bad", "also if the mapping does not read the reply")
	_, err = w.invoke(records(notified("bad")))
	require.ErrorContains(t, err, "refuses bad")

	_, err = setup(t, journal.Packed, nil).invoke(records(queued("1", "no wake-up")))
	require.ErrorAs(t, err, new(*awslambda.EventError), "nothing is dropped")
}

// After a failure the later messages of its group are not handled, so that their order stays.
func TestAMessageGroupIsHandledInOrder(t *testing.T) {
	t.Parallel()
	h := &heard{fail: map[string]bool{"a3": true}}
	w := setup(t, journal.Packed, h.command)
	var all []object
	for n := range 6 {
		for _, group := range []string{"a", "b"} {
			m := queued(fmt.Sprint(group, n), fmt.Sprint(group, n))
			m["attributes"] = object{"MessageGroupId": group}
			m["eventSourceARN"] = "arn:aws:sqs:eu-west-1:123456789012:work.fifo"
			all = append(all, m)
		}
	}
	reply, err := w.invoke(records(all...))
	require.NoError(t, err)
	assert.JSONEq(t, failures("a3", "a4", "a5"), reply)
	of := map[byte][]string{}
	for _, text := range h.all {
		of[text[0]] = append(of[text[0]], text)
	}
	assert.Equal(t, map[byte][]string{'a': {"a0", "a1", "a2", "a3"}, 'b': {"b0", "b1", "b2", "b3", "b4", "b5"}}, of)

	h.all = nil
	for _, m := range all { // fair queues have groups without an order
		m["eventSourceARN"] = "arn:aws:sqs:eu-west-1:123456789012:work"
	}
	reply, err = w.invoke(records(all...))
	require.NoError(t, err)
	assert.JSONEq(t, failures("a3"), reply)
	assert.Len(t, h.all, 12)
}

func TestMessagesKeepTheirIdsAndAttributes(t *testing.T) {
	t.Parallel()
	var got []*message.Message
	w := setup(t, journal.Packed, func(msg *message.Message) error {
		got = append(got, msg)
		return nil
	})
	plain := queued("sqs-1", "command")
	plain["messageAttributes"] = object{"name": object{"stringValue": "ship", "dataType": "String"}, "raw": object{"binaryValue": "AQI=", "dataType": "Binary"}}
	ours := queued("sqs-2", "command")
	ours["messageAttributes"] = object{"_watermill_message_uuid": object{"stringValue": "uuid-1", "dataType": "String"}}
	throughSNS := queued("sqs-3", enveloped(t, "command", object{"name": object{"Type": "String", "Value": "ship"}, "raw": object{"Type": "Binary", "Value": "AQI="}}))
	for _, c := range []struct {
		record object
		uuid   string
		want   message.Metadata
	}{
		{plain, "sqs-1", message.Metadata{"name": "ship", "raw": "\x01\x02"}},
		{ours, "uuid-1", message.Metadata{}},
		{throughSNS, "n-2", message.Metadata{"name": "ship", "raw": "\x01\x02"}},
		{notified("command"), "n-1", message.Metadata{}},
	} {
		got = nil
		_, err := w.invoke(records(c.record))
		require.NoError(t, err)
		require.Len(t, got, 1)
		assert.Equal(t, c.uuid, got[0].UUID)
		assert.Equal(t, "command", string(got[0].Payload))
		assert.Equal(t, c.want, got[0].Metadata)
	}
}

// The fields of a command may have the names of those of SNS.
func TestACommandMayLookLikeANotification(t *testing.T) {
	t.Parallel()
	var got []string
	w := setup(t, journal.Packed, func(msg *message.Message) error {
		got = append(got, string(msg.Payload)+msg.Metadata["name"])
		return nil
	})
	body := `{"type":"Notification","messageId":"42","message":"hello"}`
	plain, named := queued("1", body), queued("2", strings.Replace(body, "type", "topicArn\":\"arn:x\",\"type", 1))
	named["messageAttributes"] = object{"name": object{"stringValue": "notify"}}
	for _, r := range []object{plain, named} {
		_, err := w.invoke(records(r))
		require.NoError(t, err)
	}
	assert.Equal(t, []string{body, named["body"].(string) + "notify"}, got)
}

func TestAnInvocationEndsBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	w := setup(t, journal.Packed, nil)
	deadline := time.Now().Add(time.Hour)
	var given []time.Time
	note := func(ctx context.Context) {
		d, limited := ctx.Deadline()
		assert.True(t, limited)
		given = append(given, d)
	}
	f, err := awslambda.New(awslambda.Config{
		Journal: w.journal, Metrics: &w.metrics,
		CatchUp: func(ctx context.Context, _ ...subscriber.Hint) (subscriber.Left, error) {
			note(ctx)
			return subscriber.Left{}, nil
		},
		Commands: func(msg *message.Message) error {
			note(msg.Context())
			return nil
		},
	}, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	payload, err := json.Marshal(records(queued("1", wakeup1), queued("2", "command")))
	require.NoError(t, err)
	_, err = f.Invoke(ctx, payload)
	require.NoError(t, err)
	require.Len(t, given, 2)
	assert.WithinDuration(t, deadline.Add(-30*time.Minute), given[0], time.Minute, "a command has half of the time")
	assert.Equal(t, deadline.Add(-time.Second), given[1])

	ended, end := context.WithCancel(ctx)
	end()
	reply, err := f.Invoke(ended, payload)
	require.NoError(t, err)
	assert.JSONEq(t, failures("2"), string(reply), "a command that cannot be handled in time")
	assert.Len(t, given, 3, "only the burst, which finds that nothing is left")
}

// A handler that hangs costs its own message, and the burst has its time.
func TestACommandThatIgnoresItsContextHasFailed(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		release := make(chan struct{})
		w := setup(t, journal.Packed, func(msg *message.Message) error {
			switch string(msg.Payload) {
			case "hangs":
				<-release
			case "ends":
				runtime.Goexit()
			}
			return nil
		})
		var ends []object // as many as are handled at a time
		var ids []string
		for n := range 10 {
			ids = append(ids, fmt.Sprint(4+n))
			ends = append(ends, queued(ids[n], "ends"))
		}
		messages := append([]object{queued("1", "hangs")}, append(ends, queued("2", "good"), queued("3", wakeup1))...)
		payload, err := json.Marshal(records(messages...))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		reply, err := w.function.Invoke(ctx, payload)
		require.NoError(t, err)
		ids = append(ids, "1")
		slices.Sort(ids)
		assert.JSONEq(t, failures(ids...), string(reply))
		assert.Len(t, w.took(), 1)
		assert.Less(t, time.Since(began), 31*time.Second)
		close(release)
	})
}

func TestABurstWithoutTimeForItsHintsHasFailed(t *testing.T) {
	t.Parallel()
	w := setup(t, journal.Packed, nil)
	w.left = subscriber.Left{Aggregates: 1, Due: time.Now(), Late: true}
	_, err := w.invoke(records(queued("1", wakeup1)))
	require.ErrorContains(t, err, "no time", "the wake-up is not deleted")
	_, err = w.invoke(object{"detail-type": "Scheduled Event"})
	require.NoError(t, err, "the next sweep continues")
	w.left.Late = false
	_, err = w.invoke(records(queued("1", wakeup1)))
	require.NoError(t, err, "the event waits for another attempt")
}

// hanging is a broker that does not answer.
type hanging chan struct{}

func (h hanging) Publish(string, ...*message.Message) error { <-h; return nil }
func (hanging) Close() error                                { return nil }

func TestABrokerThatHangsDoesNotHoldUpAnInvocation(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		broker := make(hanging)
		defer close(broker)
		w := setup(t, journal.Packed, nil)
		sender, err := wakeup.NewSender(wakeup.Config{Journal: w.journal, Publisher: broker}, nil)
		require.NoError(t, err)
		function, err := awslambda.New(awslambda.Config{Journal: w.journal, CatchUp: w.catchUp, Wakeups: sender, Metrics: &w.metrics}, nil)
		require.NoError(t, err)
		testjournal.Append(t, w.journal, storage.Commit{Aggregate: order("1"), Events: []storage.Event{{Type: "placed"}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err = function.Invoke(ctx, []byte(`{"detail-type":"Scheduled Event"}`))
		require.NoError(t, err)
		assert.Less(t, time.Since(began), 10*time.Second)
	})
}

func TestAnInvocationWritesALineOfMetrics(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "shop")
	h := &heard{fail: map[string]bool{"bad": true}}
	w := setup(t, journal.Packed, h.command)
	w.left.Aggregates = 7
	sweep := object{"detail-type": "Scheduled Event"}
	for _, c := range []struct {
		event object
		err   error
		want  map[string]float64
	}{
		{sweep, nil, map[string]float64{"Sweeps": 1, "Left": 7}},
		{sweep, errors.New("throttled"), nil},
		{records(notified(wakeup1)), nil, map[string]float64{"Bursts": 1, "Hints": 2}},
		{records(queued("1", "good"), queued("2", "bad")), nil, map[string]float64{"Commands": 2, "CommandFailures": 1}},
		{object{}, nil, nil},
	} {
		w.err = c.err
		w.metrics.Reset()
		_, _ = w.invoke(c.event)
		if c.want == nil {
			assert.Empty(t, w.metrics.String(), "AWS/Lambda counts errors")
			continue
		}
		var line map[string]any
		require.NoError(t, json.Unmarshal(w.metrics.Bytes(), &line), "one line")
		assert.Equal(t, byte('\n'), w.metrics.Bytes()[w.metrics.Len()-1])
		aws := line["_aws"].(map[string]any)
		assert.InDelta(t, time.Now().UnixMilli(), aws["Timestamp"], 1e5)
		set := aws["CloudWatchMetrics"].([]any)[0].(map[string]any)
		assert.Equal(t, "Millrace", set["Namespace"])
		assert.Equal(t, []any{[]any{"FunctionName"}}, set["Dimensions"])
		assert.Equal(t, "shop", line["FunctionName"])
		got := map[string]float64{}
		for _, m := range set["Metrics"].([]any) {
			name := m.(map[string]any)["Name"].(string)
			got[name] = line[name].(float64)
		}
		assert.Equal(t, c.want, got)
	}
}

// Wrong events cause no sweep, and nothing panics.
func FuzzInvoke(f *testing.F) {
	for _, seed := range []object{
		records(notified(wakeup1)), records(queued("1", wakeup2)), records(queued("1", "x")),
		{"detail-type": "Scheduled Event"},
		records(change("INSERT", "journal", object{"pkey": object{"S": "order/1"}, "skey": object{"N": "1"}})),
	} {
		payload, err := json.Marshal(seed)
		require.NoError(f, err)
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		w := setup(t, journal.Packed, func(*message.Message) error { return nil })
		reply, err := w.function.Invoke(t.Context(), payload)
		assert.True(t, err != nil || json.Valid(reply))
		for _, burst := range w.took() {
			for id := range maps.Keys(burst) {
				require.NoError(t, id.Validate())
			}
			if len(burst) == 0 {
				assert.Contains(t, strings.ToLower(string(payload)), "detail-type")
			}
		}
	})
}
