package checkpoint_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

var (
	key   = checkpoint.Key{Group: "group", Topic: "account"}
	group = checkpoint.Group{Name: "group"}
	shard = checkpoint.Shard{Group: group, Topic: "account"}
	x     = account("x")
)

func account(value string) aggregate.ID { return aggregate.ID{Type: "account", Value: value} }

// store is a checkpoint store whose calls can be made to fail.
type store struct {
	*checkpoint.Store
	journal *journal.Journal
	client  *dynamodb.Client
	proxy   *dynamotest.Proxy // between client and the database
}

func setup(t *testing.T, shards int, options ...func(*dynamodb.Options)) store {
	t.Helper()
	return setupIn(t, journal.Classic, shards, options...)
}

func setupIn(t *testing.T, layout journal.Layout, shards int, options ...func(*dynamodb.Options)) store {
	t.Helper()
	proxy := dynamotest.NewProxy(t, testdb.Client(t))
	client := proxy.Client(options...)
	j := testjournal.New(t, client, journal.Config{Shards: shards, Layout: layout})
	return store{checkpoint.New(j), j, client, proxy}
}

// create creates a group with some members, each of which has taken the given shards.
func (s store) create(t *testing.T, members ...[]int) checkpoint.Membership {
	t.Helper()
	next := checkpoint.NewMembership(s.journal.Shards(), time.Time{})
	for _, shards := range members {
		var number uint64
		next, number = next.Join(checkpoint.Member{})
		next = next.Take(number, shards)
	}
	return s.change(t, key, checkpoint.Membership{}, next)
}

func (s store) change(t *testing.T, key checkpoint.Key, from, to checkpoint.Membership) checkpoint.Membership {
	t.Helper()
	membership, err := s.ChangeMembership(t.Context(), key, from, to)
	require.NoError(t, err)
	return membership
}

func (s store) read(t *testing.T) checkpoint.Membership {
	t.Helper()
	membership, err := s.ReadMembership(t.Context(), key)
	require.NoError(t, err)
	return membership
}

func (s store) write(t *testing.T, id aggregate.ID, n int) {
	t.Helper()
	commit := storage.Commit{Aggregate: id}
	for range n {
		commit.Events = append(commit.Events, storage.Event{Type: "deposited", Payload: []byte("{}")})
	}
	testjournal.Append(t, s.journal, commit)
}

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// put writes a row that may be corrupt.
func (s store) put(t *testing.T, partition, sort string, attributes item) {
	t.Helper()
	row := item{"pkey": text(partition), "skey": text(sort)}
	for name, value := range attributes {
		row[name] = value
	}
	table := s.journal.Config().Tables.Checkpoint
	_, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: row})
	require.NoError(t, err)
}

// rows counts the rows of a partition.
func (s store) rows(t *testing.T, partition string) int {
	t.Helper()
	table := s.journal.Config().Tables.Checkpoint
	condition := "pkey = :p"
	out, err := s.client.Query(t.Context(), &dynamodb.QueryInput{
		TableName: &table, KeyConditionExpression: &condition,
		ExpressionAttributeValues: item{":p": text(partition)},
	})
	require.NoError(t, err)
	return int(out.Count)
}

// loseFirst makes the SDK send each call twice, because the reply to its first attempt is lost.
func (s store) loseFirst(operation string) {
	calls := 0
	s.proxy.Inject(dynamotest.LoseReply(), dynamotest.On(operation), dynamotest.Matching(func(string, any) bool {
		calls++
		return calls%2 == 1
	}))
}

func number(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
