package repository_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// Each benchmark is compared with the same requests made with the bare SDK. Both include the
// allocations of the SDK and of the database in memory, which are most of the total.

func BenchmarkSave(b *testing.B) {
	for _, count := range []int{1, 10} {
		list := deposits(count)
		b.Run(fmt.Sprintf("events=%d/repository", count), func(b *testing.B) {
			repo, _ := onMemory(b)
			a, err := repo.NewAggregate("42")
			require.NoError(b, err)
			perEvent(b, count, func() error {
				a, err = repo.Save(b.Context(), a, list)
				return err
			})
		})
		b.Run(fmt.Sprintf("events=%d/bare", count), func(b *testing.B) {
			repo, client := onMemory(b)
			_, err := repo.Execute(b.Context(), "42", Deposit(1))
			require.NoError(b, err)
			version := 1
			perEvent(b, count, func() error {
				err := bareSave(b, client, version, count)
				version += count
				return err
			})
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	const count = 100
	b.Run("events=100/repository", func(b *testing.B) {
		repo, _ := onMemory(b)
		write(b, repo, count)
		perEvent(b, count, func() error {
			_, err := repo.Load(b.Context(), "42")
			return err
		})
	})
	b.Run("events=100/bare", func(b *testing.B) {
		repo, client := onMemory(b)
		write(b, repo, count)
		perEvent(b, count, func() error { return bareLoad(b, client) })
	})
}

func BenchmarkExecute(b *testing.B) {
	for name, config := range map[string]repository.Config{"no cache": {}, "cache": {Cache: 1}} {
		b.Run("flat state/"+name, func(b *testing.B) {
			accounts, _ := onMemoryOf(b, Accounts, config)
			perEvent(b, 1, func() error {
				_, err := accounts.Execute(b.Context(), "42", Deposit(1))
				return err
			})
		})
		b.Run("state with a map/"+name, func(b *testing.B) {
			baskets, _ := onMemoryOf(b, Baskets, config)
			perEvent(b, 1, func() error {
				_, err := baskets.Execute(b.Context(), "42", always[Basket](Added{"pen", 1}))
				return err
			})
		})
	}
}

// onMemory returns a repository without snapshots and the client of its tables, which have one
// shard.
func onMemory(b *testing.B) (*repository.Repository[Account], *dynamodb.Client) {
	b.Helper()
	return onMemoryOf(b, Accounts, repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
}

func onMemoryOf[S any](
	b *testing.B, definition aggregate.Definition[S], config repository.Config,
) (*repository.Repository[S], *dynamodb.Client) {
	b.Helper()
	client := dynamotest.New(b).Client()
	j := testjournal.New(b, client, journal.Config{Layout: journal.Classic, Shards: 1})
	repo := testjournal.Repository(b, j, definition, config)
	return repo, client
}

func write(b *testing.B, repo *repository.Repository[Account], events int) {
	b.Helper()
	for ; events > 0; events -= 10 {
		_, err := repo.Execute(b.Context(), "42", always(deposits(10)...))
		require.NoError(b, err)
	}
}

// perEvent reports the allocations of do for each event.
func perEvent(b *testing.B, events int, do func() error) {
	b.Helper()
	b.ReportAllocs()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		if err := do(); err != nil {
			b.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N*events), "allocs/event")
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func number(n int) types.AttributeValue  { return &types.AttributeValueMemberN{Value: strconv.Itoa(n)} }

var bareHead = map[string]types.AttributeValue{"pkey": text("account-0"), "skey": text("account-42-0")}

// bareSave writes the same items as a repository.
func bareSave(b *testing.B, client *dynamodb.Client, version, count int) error {
	b.Helper()
	commitID, now := uuid.NewString(), int(time.Now().UnixMilli())
	actions := []types.TransactWriteItem{{Update: &types.Update{
		TableName: aws.String("snapshot"), Key: bareHead,
		UpdateExpression: aws.String("SET #v = :next"), ConditionExpression: aws.String("#v = :expected"),
		ExpressionAttributeNames:  map[string]string{"#v": "version"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":next": number(version + count), ":expected": number(version)},
	}}}
	for i := range count {
		payload, err := json.Marshal(Deposited{1})
		if err != nil {
			return err
		}
		n := version + 1 + i
		actions = append(actions, types.TransactWriteItem{Put: &types.Put{
			TableName: aws.String("journal"),
			Item: map[string]types.AttributeValue{
				"pkey": text("account-0"), "skey": text("account-42-" + strconv.Itoa(n)), "aid": text("account-42"), "seq_nr": number(n),
				"payload": &types.AttributeValueMemberB{Value: payload}, "occurred_at": number(now), "commit_id": text(commitID),
				"event_id": text(uuid.NewString()), "event_type": text("account.deposited.v1"),
			},
			ConditionExpression:      aws.String("attribute_not_exists(#pk)"),
			ExpressionAttributeNames: map[string]string{"#pk": "pkey"},
		}})
	}
	_, err := client.TransactWriteItems(b.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: actions, ClientRequestToken: &commitID})
	return err
}

// bareLoad reads the same items as a repository, and applies the events.
func bareLoad(b *testing.B, client *dynamodb.Client) error {
	b.Helper()
	head, err := client.GetItem(b.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("snapshot"), Key: bareHead, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return err
	}
	page, err := client.Query(b.Context(), &dynamodb.QueryInput{
		TableName: aws.String("journal"), IndexName: aws.String("journal-aid-index"),
		KeyConditionExpression:   aws.String("#aid = :aid AND #n BETWEEN :from AND :to"),
		ExpressionAttributeNames: map[string]string{"#aid": "aid", "#n": "seq_nr"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":aid": text("account-42"), ":from": number(1), ":to": head.Item["version"],
		},
	})
	if err != nil {
		return err
	}
	var account Account
	for _, it := range page.Items {
		var event Deposited
		if err := json.Unmarshal(it["payload"].(*types.AttributeValueMemberB).Value, &event); err != nil {
			return err
		}
		event.Apply(&account)
	}
	return nil
}
