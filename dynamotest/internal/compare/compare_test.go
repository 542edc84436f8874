package compare

import (
	"cmp"
	"context"
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
)

var (
	operations = flag.Int("compare.operations", 4_000, "how many operations to compare, at least")
	itself     = flag.Int("compare.itself", 3_000, "how many operations to compare DynamoDB Local with itself by")
	firstSeed  = flag.Uint64("compare.seed", 1, "the seed of the first world; the next has the next one")
	length     = flag.Int("compare.length", 300, "how many operations a world has after its tables are made")
	patience   = flag.Duration("compare.patience", 2*time.Minute, "how long to look for short reproductions of all differences")
	strict     = flag.Bool("compare.messages", false, "fail if the messages of errors differ")
)

func TestSameAsDynamoDBLocal(t *testing.T) {
	runner := &Runner{Left: local(t), Right: inProcess(t), Explain: explained}
	report(t, runner, run(t, runner, *operations))
}

// Comparing DynamoDB Local with itself shows that the operations are the same each time, and that
// only specified behaviour is compared.
func TestDynamoDBLocalIsTheSameAsItself(t *testing.T) {
	runner := &Runner{Left: local(t), Right: local(t), Explain: nothingKnown}
	result := run(t, runner, *itself)
	report(t, runner, result)

	c := result.Coverage
	assert.GreaterOrEqual(t, c.share("write ", "ok"), 50, "of a hundred writes that succeed")
	for _, name := range []string{
		"CreateTable", "DescribeTable", "UpdateTable", "DeleteTable", "ListTables", "UpdateTimeToLive", "DescribeTimeToLive",
		"PutItem", "GetItem", "UpdateItem", "DeleteItem", "BatchGetItem", "BatchWriteItem", "Query", "Scan", "TransactWriteItems", "TransactGetItems",
	} {
		assert.NotZero(t, c["operation "+name+" ok"], name)
	}
	for _, word := range []string{
		"ATTRIBUTE_EXISTS", "ATTRIBUTE_NOT_EXISTS", "ATTRIBUTE_TYPE", "BEGINS_WITH", "CONTAINS", "SIZE", "IF_NOT_EXISTS", "LIST_APPEND",
		"AND", "OR", "NOT", "BETWEEN", "IN", "SET", "REMOVE", "ADD", "DELETE", "=", "<>", "<", "<=", ">", ">=", "+", "-", "[N]", ".",
	} {
		assert.NotZero(t, c["expression "+word], word)
	}
}

// local returns an empty DynamoDB Local.
func local(t *testing.T) *dynamodb.Client {
	t.Helper()
	return withoutRetries(dynamolocaltest.Client(t))
}

// inProcess returns an empty database of dynamotest.
func inProcess(t *testing.T) *dynamodb.Client {
	t.Helper()
	return withoutRetries(dynamotest.New(t).Client())
}

func withoutRetries(client *dynamodb.Client) *dynamodb.Client {
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
}

func nothingKnown(Difference) (Known, bool) { return Known{}, false }

// run compares worlds until there were n operations.
func run(t *testing.T, runner *Runner, n int) *Result {
	t.Helper()
	result := NewResult()
	start := time.Now()
	for seed := *firstSeed; result.Operations < n; seed++ {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		err := runner.Run(ctx, NewWorld(seed, *length), result)
		cancel()
		require.NoError(t, err, "seed %d", seed)
	}
	t.Logf("%d operations in %v", result.Operations, time.Since(start).Round(time.Millisecond))
	return result
}

// report fails the test for any difference, with a short reproduction of one of each kind.
func report(t *testing.T, runner *Runner, result *Result) {
	t.Helper()
	if testing.Verbose() {
		t.Logf("what was covered:\n%s", result.Coverage)
	}
	for name, n := range result.Explained {
		t.Logf("known difference, %d times: %s", n, name)
	}
	reportMessages(t, result)

	kinds := map[string][]Difference{}
	for _, d := range result.Differences {
		kinds[d.Kind()] = append(kinds[d.Kind()], d)
	}
	names := slices.Collect(maps.Keys(kinds))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(kinds[b]), len(kinds[a])), strings.Compare(a, b))
	})
	ctx, cancel := context.WithTimeout(t.Context(), *patience)
	defer cancel()
	for _, name := range names {
		t.Errorf("%d times %s\n%s", len(kinds[name]), name, runner.Minimise(ctx, kinds[name][0]))
	}
}

// reportMessages reports errors that differ only in their message.
func reportMessages(t *testing.T, result *Result) {
	t.Helper()
	messages := slices.SortedFunc(maps.Values(result.Messages), func(a, b *Messages) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Left, b.Left))
	})
	for _, m := range messages {
		t.Logf("%d times another message\n  left:  %s\n  right: %s\n  of %s", m.Count, m.Left, m.Right, m.Operation)
	}
	if *strict {
		assert.Empty(t, messages, "messages of errors differ")
	}
}
