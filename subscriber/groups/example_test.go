package groups_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// audit creates a journal of two accounts with three events each, and a group that has handled all
// of them. If refuse names an event, the group parks its account there.
func audit(ctx context.Context, refuse string) *journal.Journal {
	client := dynamotest.Open().Client() // any *dynamodb.Client
	must(journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 4}))
	j, err := journal.Open(ctx, client, journal.Config{})
	must(err)
	deposit(j, "alice", 3)
	deposit(j, "bob", 3)

	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "audit", Failures: subscriber.Park(1)}, nil)
	must(err)
	messages, err := sub.Subscribe(ctx, "account")
	must(err)
	for handled := 0; handled < 6; handled++ {
		msg := <-messages
		if id, number, _ := subscriber.AggregateFromContext(msg.Context()); fmt.Sprintf("%s/%d", id.Value, number) == refuse {
			msg.Nack()
			handled += 3 - int(number)
			continue
		}
		msg.Ack()
	}
	for parked := 0; refuse != "" && parked == 0; {
		for _, err := range groups.Of(j, "audit", "account").Parked(ctx, aggregate.ID{}) {
			must(err)
			parked++
		}
	}
	must(sub.Close())
	return j
}

// deposit publishes n events of an account.
func deposit(j *journal.Journal, account string, n int) {
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	must(err)
	var messages []*message.Message
	for range n {
		msg := message.NewMessage(watermill.NewUUID(), []byte(`{"amount":5}`))
		msg.Metadata.Set(publisher.AggregateIDKey, account)
		msg.Metadata.Set(publisher.NameKey, "account.deposited.v1")
		messages = append(messages, msg)
	}
	must(p.Publish("account", messages...))
	must(p.Close())
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func ExampleGroups_List() {
	ctx := context.Background()
	g := groups.New(audit(ctx, ""))

	all, err := g.List(ctx)
	must(err)
	for _, group := range all {
		fmt.Printf("%s on %s: %d members, %d of %d shards free\n",
			group.Name, group.Topic, len(group.Members), len(group.Free()), len(group.Shards))
	}
	// Output:
	// audit on account: 0 members, 4 of 4 shards free
}

// A handle operates one group on one topic.
func Example() {
	ctx := context.Background()
	j := audit(ctx, "")
	deposit(j, "bob", 2)

	g := groups.Of(j, "audit", "account")
	lag, err := g.Lag(ctx, groups.LagOptions{})
	must(err)
	fmt.Printf("%s on %s has %d events to handle\n", g.Name(), g.Topic(), lag.Events)
	// Output:
	// audit on account has 2 events to handle
}

func ExampleGroup_Lag() {
	ctx := context.Background()
	j := audit(ctx, "")
	g := groups.Of(j, "audit", "account")
	deposit(j, "bob", 2)

	lag, err := g.Lag(ctx, groups.LagOptions{
		Behind: func(b groups.BehindAggregate) {
			fmt.Printf("%s: the next event is %d of %d\n", b.Aggregate, b.Next, b.Head)
		},
	})
	must(err)
	fmt.Printf("%d events behind\n", lag.Events)
	// Output:
	// account-bob: the next event is 4 of 5
	// 2 events behind
}

func ExampleGroup_Estimate() {
	ctx := context.Background()
	j := audit(ctx, "")
	g := groups.Of(j, "audit", "account")
	deposit(j, "bob", 2)

	lag, err := g.Estimate(ctx)
	must(err)
	fmt.Printf("%d events behind, at least: %t\n", lag.Events, lag.AtLeast)
	// Output:
	// 2 events behind, at least: false
}

func ExampleGroup_Reset() {
	ctx := context.Background()
	g := groups.Of(audit(ctx, ""), "audit", "account")

	must(g.Pause(ctx))
	must(g.WaitIdle(ctx))
	// ... clear the read model ...
	must(g.Reset(ctx, subscriber.Beginning(), nil))
	must(g.Resume(ctx))

	lag, err := g.Lag(ctx, groups.LagOptions{})
	must(err)
	fmt.Printf("%d events to handle\n", lag.Events)
	// Output:
	// 6 events to handle
}

func ExampleGroups_Skip() {
	ctx := context.Background()
	g := groups.New(audit(ctx, "bob/2"))

	handle := g.Of("audit", "account")
	for b, err := range handle.Parked(ctx, aggregate.ID{}) {
		must(err)
		reason, _, _ := strings.Cut(b.Parked.Reason, " (")
		fmt.Printf("%s: event %d failed: %s\n", b.Aggregate, b.Next, reason)
		must(g.Skip(ctx, "audit", b.Aggregate, b.Next)) // or g.Unpark, after the cause is fixed
	}
	lag, err := handle.Lag(ctx, groups.LagOptions{})
	must(err)
	fmt.Printf("%d event to handle\n", lag.Events)
	// Output:
	// account-bob: event 2 failed: the message was nacked without a reason
	// 1 event to handle
}

// After the cause of failures is fixed, the group tries the parked aggregates again.
func ExampleGroup_UnparkAll() {
	ctx := context.Background()
	g := groups.Of(audit(ctx, "bob/2"), "audit", "account")

	unparked, err := g.UnparkAll(ctx, groups.Selection{Reason: "nacked"})
	must(err)
	parked := 0
	for _, err := range g.Parked(ctx, aggregate.ID{}) {
		must(err)
		parked++
	}
	fmt.Printf("%d unparked, %d still parked\n", unparked, parked)
	// Output:
	// 1 unparked, 0 still parked
}

// To read a long list in pages, begin each page after the last aggregate of the page before.
func ExampleGroup_Parked() {
	const size = 50
	ctx := context.Background()
	g := groups.Of(audit(ctx, "bob/2"), "audit", "account")

	page := func(after aggregate.ID) (last aggregate.ID, n int) {
		for b, err := range g.Parked(ctx, after) {
			must(err)
			fmt.Printf("%s: event %d\n", b.Aggregate, b.Parked.Number)
			last = b.Aggregate
			if n++; n == size {
				break // nothing more is read
			}
		}
		return last, n
	}
	last, n := page(aggregate.ID{})
	fmt.Println("first page:", n)
	_, n = page(last)
	fmt.Println("second page:", n)
	// Output:
	// account-bob: event 2
	// first page: 1
	// second page: 0
}

func ExampleGroup_SkipAll() {
	ctx := context.Background()
	g := groups.Of(audit(ctx, "bob/2"), "audit", "account")

	skipped, err := g.SkipAll(ctx, groups.Selection{
		EventType: "account.deposited.v1",
		Edited:    func(id aggregate.ID, number uint64) { fmt.Printf("event %d of %s is skipped\n", number, id) },
	})
	must(err)
	fmt.Printf("%d skipped\n", skipped)
	// Output:
	// event 2 of account-bob is skipped
	// 1 skipped
}

func ExampleGroup_Skipped() {
	ctx := context.Background()
	g := groups.New(audit(ctx, "bob/2"))
	must(g.Skip(ctx, "audit", aggregate.ID{Type: "account", Value: "bob"}, 2))

	for e, err := range g.Of("audit", "account").Skipped(ctx, aggregate.ID{}, 0) {
		must(err)
		reason, _, _ := strings.Cut(e.Reason, ",")
		fmt.Printf("%s, event %d (%s): %s\n", e.Aggregate, e.Number, e.EventType, reason)
		// Forget it after its effects were corrected by hand.
		must(g.ForgetSkipped(ctx, "audit", e.Aggregate, e.Number))
	}
	// Output:
	// account-bob, event 2 (account.deposited.v1): skipped by an operator
}

// After an import, members reconcile to find events that are dated before their cursors.
func ExampleGroup_Reconcile() {
	ctx := context.Background()
	g := groups.Of(audit(ctx, ""), "audit", "account")

	must(g.Reconcile(ctx))
	one, err := g.Status(ctx)
	must(err)
	fmt.Printf("%d shards are free for members that reconcile them\n", len(one.Free()))
	// Output:
	// 4 shards are free for members that reconcile them
}

func ExampleGroup_Remove() {
	ctx := context.Background()
	g := groups.Of(audit(ctx, ""), "audit", "account")

	rows := 0
	must(g.Remove(ctx, groups.RemoveOptions{Progress: func(n int) { rows += n }}))
	_, err := g.Status(ctx)
	fmt.Println(err)
	// Output:
	// read consumer group "audit" on topic "account": there is no such consumer group
}

// A program that has written events waits until the read model has applied them.
func ExampleGroups_WaitApplied() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	j := audit(ctx, "")

	alice := aggregate.ID{Type: "account", Value: "alice"}
	err := groups.New(j).WaitApplied(ctx, "audit", alice, 3)
	fmt.Println("event 3:", err)

	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	err = groups.New(j).WaitApplied(short, "audit", alice, 4)
	fmt.Println("event 4:", errors.Is(err, groups.ErrNotApplied))
	// Output:
	// event 3: <nil>
	// event 4: true
}

// A topic of mails is a queue. Mails that all groups have handled are removed after some days.
func ExampleGroups_Trim() {
	ctx := context.Background()
	client := dynamotest.Open().Client() // any *dynamodb.Client
	must(journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 4}))
	lastWeek := func() time.Time { return time.Now().AddDate(0, 0, -7) }
	j, err := journal.Open(ctx, client, journal.Config{Now: lastWeek})
	must(err)
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	must(err)
	must(p.Publish("mails", message.NewMessage(watermill.NewUUID(), []byte(`{"to":"alice"}`))))
	must(p.Publish("mails", message.NewMessage(watermill.NewUUID(), []byte(`{"to":"bob"}`))))
	must(p.Close())

	j, err = journal.Open(ctx, client, journal.Config{})
	must(err)
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "sender"}, nil)
	must(err)
	messages, err := sub.Subscribe(ctx, "mails")
	must(err)
	for range 2 {
		(<-messages).Ack()
	}
	must(sub.Close()) // stores the positions

	trimmed, err := groups.New(j).Trim(ctx, "mails", groups.TrimOptions{Keep: 72 * time.Hour})
	must(err)
	fmt.Println("removed", trimmed.Events, "events of", trimmed.Shortened, "stream")

	// Output: removed 2 events of 1 stream
}

// Commands of processes have an aggregate id, and their topic is one of the publisher's queues. A
// stored row says when a pass is due.
func ExampleGroups_TrimDue() {
	ctx := context.Background()
	client := dynamotest.Open().Client() // any *dynamodb.Client
	must(journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 4}))
	lastWeek := func() time.Time { return time.Now().AddDate(0, 0, -8) }
	j, err := journal.Open(ctx, client, journal.Config{Now: lastWeek})
	must(err)
	p, err := publisher.NewPublisher(publisher.Config{Journal: j, Queues: []string{"commands"}}, nil)
	must(err)
	command := message.NewMessage(watermill.NewUUID(), []byte(`{"order":"o1"}`))
	command.Metadata.Set(publisher.AggregateIDKey, "saga-1")
	must(p.Publish("commands", command))
	must(p.Close())

	j, err = journal.Open(ctx, client, journal.Config{})
	must(err)
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "commands"}, nil)
	must(err)
	messages, err := sub.Subscribe(ctx, "commands")
	must(err)
	(<-messages).Ack()
	must(sub.Close()) // stores the positions

	for range 2 {
		trimmed, err := groups.New(j).TrimDue(ctx, "commands", groups.TrimOptions{Keep: 7 * 24 * time.Hour})
		must(err)
		fmt.Println("visited", trimmed.Aggregates, "streams, removed", trimmed.Events, "events")
	}

	// Output:
	// visited 1 streams, removed 1 events
	// visited 0 streams, removed 0 events
}
