package docs

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestThePageOfTestingBeginsWithATestOfHere(t *testing.T) {
	t.Parallel()
	_, block, found := strings.Cut(read(t, "testing.md"), "```go\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	assert.Contains(t, read(t, "../test/docs/testing_test.go"), strings.Replace(block, "{\n", "{\n\tt.Parallel()\n", 1))
}

func TestThePageOfTestingShowsTestsOfHere(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"`DB.Handler` serves", "A `Proxy` in front of"} {
		_, block, found := strings.Cut(read(t, "testing.md"), before)
		require.True(t, found)
		_, block, _ = strings.Cut(block, "```go\n")
		block, _, _ = strings.Cut(block, "```")
		assert.Contains(t, read(t, "../test/docs/testing_test.go"), strings.Replace(block, "{\n", "{\n\tt.Parallel()\n", 1))
	}
}

func TestAClientReachesTheDatabaseOverHTTP(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	server := httptest.NewServer(db.Handler())
	t.Cleanup(server.Close)
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: &server.URL, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""), // requests must be signed
	})
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 1}))

	throttled := db.Inject(dynamotest.Throttle(), dynamotest.On("GetItem"), dynamotest.Times(1))
	_, err := journal.Open(t.Context(), client, journal.Config{})
	require.NoError(t, err)
	assert.Equal(t, 1, throttled.Fired(), "the SDK has tried again")
}

func TestOneOfTwoProcessesCrashes(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 1}))
	open := func(client *dynamodb.Client) *repository.Repository[Account] {
		j, err := journal.Open(t.Context(), client, journal.Config{})
		require.NoError(t, err)
		accounts, err := repository.New(j, Accounts, repository.Config{})
		require.NoError(t, err)
		return accounts
	}
	first, second := dynamotest.NewProxy(t, db.Client()), dynamotest.NewProxy(t, db.Client())
	one, two := open(first.Client()), open(second.Client())

	first.Inject(dynamotest.LoseReply(), dynamotest.Chance(0.2)) // faults of one process
	_, err := one.Execute(t.Context(), "42", Deposit(100))
	require.NoError(t, err)
	first.Close() // it crashes: its requests fail, and replies to open requests are dropped
	_, err = one.Execute(t.Context(), "42", Deposit(100))
	require.Error(t, err)

	account, err := two.Execute(t.Context(), "42", Deposit(50)) // the other process goes on
	require.NoError(t, err)
	assert.EqualValues(t, 2, account.Version)
}

// Account is what the tests of the page are about.
type Account = balance

var Accounts = aggregate.Define[balance]("balance", deposited{})

func Deposit(cents int) aggregate.Decision[balance] {
	return func(balance) (aggregate.Events[balance], error) {
		return aggregate.Events[balance]{deposited{cents}}, nil
	}
}

func TestADepositIsStoredOnceThoughTheReplyIsLost(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	client := db.Client()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 1}))
	j, err := journal.Open(t.Context(), client, journal.Config{})
	require.NoError(t, err)
	accounts, err := repository.New(j, Accounts, repository.Config{})
	require.NoError(t, err)

	lost := db.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
	account, err := accounts.Execute(t.Context(), "42", Deposit(100))
	require.NoError(t, err)
	assert.EqualValues(t, 1, account.Version)
	assert.Equal(t, 1, lost.Fired(), "the fault has happened")
}
