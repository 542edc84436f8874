package awslambda_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/awslambda"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

type parcel struct{ Sent bool }

type sent struct{ To string }

func (sent) EventType() string { return "parcel.sent.v1" }
func (sent) Apply(p *parcel)   { p.Sent = true }

var parcels = aggregate.Define[parcel]("parcel", sent{})

// send is a command.
type send struct{ Parcel, To string }

func (s *send) decide(p parcel) (aggregate.Events[parcel], error) {
	if p.Sent {
		return nil, errors.New("it was sent before")
	}
	return aggregate.Events[parcel]{sent{s.To}}, nil
}

func Example() {
	ctx := context.Background()
	client := dynamotest.Open().Client() // in Lambda dynamodb.NewFromConfig
	app, err := millrace.Open(ctx, client, millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 4}})
	if err != nil {
		fmt.Println(err)
		return
	}
	repo, err := millrace.Repository(app, parcels, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = app.HandleEvents(millrace.Group{Name: "labels", Topics: []string{"parcel"}},
		cqrs.NewGroupEventHandler(func(_ context.Context, e *sent) error {
			fmt.Println("a label for", e.To)
			return nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	commands, err := command.Dispatch(app.Marshaler(), command.Handler("send", repo,
		func(s *send) (string, aggregate.Decision[parcel]) { return s.Parcel, s.decide }))
	if err != nil {
		fmt.Println(err)
		return
	}
	function, err := awslambda.New(awslambda.Config{
		Journal: app.Journal(), CatchUp: app.CatchUp, Commands: commands, Wakeups: app.Wakeups(),
		Metrics: io.Discard, // in Lambda os.Stdout, the default
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	// In Lambda, lambda.Start(function) does the rest. These are events as it passes them.
	for _, event := range []string{
		// A command in a queue. The name of its type is in an attribute, as cqrs sets it.
		`{"Records":[{"eventSource":"aws:sqs","messageId":"a","body":"{\"Parcel\":\"1\",\"To\":\"Bern\"}",
			"messageAttributes":{"name":{"stringValue":"awslambda_test.send","dataType":"String"}}}]}`,
		// The stream of the journal table shows what the command has written.
		`{"Records":[{"eventSource":"aws:dynamodb","eventName":"INSERT",
			"eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/journal/stream/2026-11-29T00:00:00.000",
			"dynamodb":{"Keys":{"pkey":{"S":"parcel/1"},"skey":{"N":"1"}}}}]}`,
		`{"source":"aws.events","detail-type":"Scheduled Event"}`,
	} {
		reply, err := function.Invoke(ctx, []byte(event))
		fmt.Println(string(reply), err)
	}
	// Output:
	// {"batchItemFailures":[]} <nil>
	// a label for Bern
	// {"batchItemFailures":[]} <nil>
	// {"left":0} <nil>
}
