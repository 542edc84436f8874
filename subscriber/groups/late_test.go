package groups_test

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// deposits is a read model on one shard. Its only row is a total, to which the handler of each
// event adds 100, in the transaction that moves the position.
type deposits struct {
	store
	t      *testing.T
	client *dynamodb.Client
	table  string
}

func newDeposits(t *testing.T, client *dynamodb.Client) *deposits {
	t.Helper()
	d := &deposits{store: open(t, client, journal.Config{}), t: t, client: client}
	d.table = d.Config().Tables.Checkpoint // any table will do
	d.write(t, "x", 0, 1)
	return d
}

func totalKey() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pkey": &types.AttributeValueMemberS{Value: "total"}, "skey": &types.AttributeValueMemberS{Value: "total"},
	}
}

// isDeposit reports whether a transaction adds to the total.
func isDeposit(_ string, in any) bool {
	items := in.(*dynamodb.TransactWriteItemsInput).TransactItems
	last := items[len(items)-1].Update
	return last != nil && text(last.Key["pkey"]) == "total"
}

// run starts a member. It passes the result of each attempt to done. A failed attempt is repeated
// after a pause.
func (d *deposits) run(client *dynamodb.Client, pause time.Duration, done func(error)) *subscriber.Subscriber {
	config := d.quick()
	config.Journal = open(d.t, client, journal.Config{}).Journal
	config.NackResendSleep, config.MaxNackResendSleep = pause, pause
	sub, messages := subscribe(d.t, config)
	go func() {
		for msg := range messages {
			err := d.handle(client, msg)
			done(err)
			if err != nil {
				msg.Nack()
			} else {
				msg.Ack()
			}
		}
	}()
	return sub
}

func (d *deposits) handle(client *dynamodb.Client, msg *message.Message) error {
	position, _ := subscriber.PositionFromContext(msg.Context())
	return position.Commit(msg.Context(), func(ctx context.Context, a subscriber.Advance) error {
		_, err := client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{a.Item, {
			Update: &types.Update{
				TableName: &d.table, Key: totalKey(), UpdateExpression: aws.String("ADD amount :n"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: "100"}},
			},
		}}})
		return err
	})
}

func (d *deposits) total() string {
	d.t.Helper()
	out, err := d.client.GetItem(d.t.Context(), &dynamodb.GetItemInput{TableName: &d.table, Key: totalKey(), ConsistentRead: aws.Bool(true)})
	require.NoError(d.t, err)
	if n, ok := out.Item["amount"].(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

func (d *deposits) clear() {
	d.t.Helper()
	_, err := d.client.DeleteItem(d.t.Context(), &dynamodb.DeleteItemInput{TableName: &d.table, Key: totalKey()})
	require.NoError(d.t, err)
}

// A transaction of a handler is held up, and arrives when the read model was cleared, as
// Group.WaitIdle describes it. It must not commit.
func TestATransactionOfBeforeAResetOrRemovalNeverCommits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ repeats, crashes, removes bool }{
		"after a reset": {},
		"after a reset, although another attempt succeeded":   {repeats: true},
		"after a reset, if its member crashed":                {crashes: true},
		"after a removal":                                     {removes: true},
		"after a removal, although another attempt succeeded": {removes: true, repeats: true},
		"after a removal, if its member crashed":              {removes: true, crashes: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
				d := newDeposits(t, client)
				proxy := dynamotest.NewProxy(t, client)
				late := proxy.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1), dynamotest.Matching(isDeposit))
				pause, attempts := time.Hour, make(chan error, 2)
				if test.repeats {
					pause = time.Millisecond
				}
				members := []*subscriber.Subscriber{d.run(proxy.Client(testdb.Once), pause, func(err error) { attempts <- err })}
				require.Error(t, <-attempts, "the connection was cut")
				if test.repeats {
					require.NoError(t, <-attempts)
				}
				if test.crashes {
					proxy.Inject(dynamotest.CutConnection())
					members = append(members, d.run(client, pause, func(error) {}))
				}

				require.NoError(t, d.Pause(t.Context()))
				require.NoError(t, d.WaitIdle(t.Context()))
				d.clear()
				if test.removes {
					for _, member := range members {
						require.NoError(t, member.Close())
					}
					require.NoError(t, d.Remove(t.Context(), groups.RemoveOptions{Force: test.crashes}))
				} else {
					require.NoError(t, d.Reset(t.Context(), subscriber.Beginning(), nil))
				}
				require.Equal(t, 1, late.Arrive())
				assert.Empty(t, d.total(), "it has committed")

				if test.removes {
					d.run(client, pause, func(error) {})
				} else {
					require.NoError(t, d.Resume(t.Context()))
				}
				d.waitApplied(t, "x", 1)
				assert.Equal(t, "100", d.total())
			})
		})
	}
}
