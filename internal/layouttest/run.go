package layouttest

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/layoutcheck"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/internal/testdb"
)

// Run tests what the engine promises of every layout: package layoutcheck, keys, and a lost reply.
// The tests of package journal cover more, such as faults and limits.
func Run(t *testing.T, kind engine.Kind) {
	t.Helper()
	for _, check := range layoutcheck.Checks() {
		t.Run(check.Name, func(t *testing.T) {
			t.Parallel()
			check.Run(t, Open(t, kind), "account")
		})
	}
	for name, test := range map[string]func(w world){
		"a key tells its event":                        tellsTheEventOfAKey,
		"a commit whose reply is lost is written once": survivesALostReply,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(world{t, kind, Open(t, kind)})
		})
	}
}

type world struct {
	*testing.T
	kind engine.Kind
	*engine.Engine
}

func account(value string) aggregate.ID { return aggregate.ID{Type: "account", Value: value} }

func (w world) write(c storage.Commit) {
	w.Helper()
	_, err := w.Append(w.Context(), c)
	require.NoError(w, err)
}

// tellsTheEventOfAKey takes the keys from the table, as its stream shows them.
func tellsTheEventOfAKey(w world) {
	want := map[aggregate.ID]uint64{}
	for _, id := range []aggregate.ID{account("1"), account("a-b-7"), account("x/ü~"), {Type: "the-other/type", Value: "-1"}} {
		w.write(layoutcheck.Commit(id, 0, 1))
		c := layoutcheck.Commit(id, 1, 2)
		c.CommandID = "command of " + id.Value
		w.write(c)
		w.write(storage.Commit{Aggregate: id, Expected: 3, Proven: true, CommandID: "without events"})
		want[id] = 3
	}
	_, err := w.AppendJoint(w.Context(), storage.Joint{CommandID: "joint", Parts: []storage.Commit{layoutcheck.Commit(account("1"), 3, 1), layoutcheck.Commit(account("2"), 0, 1)}})
	require.NoError(w, err)
	want[account("1")], want[account("2")] = 4, 1

	shown := map[aggregate.ID]uint64{}
	for page := dynamodb.NewScanPaginator(w.Given, &dynamodb.ScanInput{TableName: &w.Config.Tables.Journal}); page.HasMorePages(); {
		found, err := page.NextPage(w.Context())
		require.NoError(w, err)
		for _, it := range found.Items {
			if id, number, ok := w.EventOf(it); ok {
				shown[id] = max(shown[id], number)
			}
		}
	}
	for id, last := range want {
		assert.Positive(w, shown[id], "%v", id)
		assert.LessOrEqual(w, shown[id], last+1, "%v: only the place after the last event", id)
		delete(shown, id)
	}
	assert.Empty(w, shown)

	attributes := w.Config.Attributes
	for _, key := range []table.Item{
		{},
		w.Layout.DescriptorKey(), w.Layout.CommandKey("1"),
		{attributes.PartitionKey: table.StringValue("account/1"), attributes.SortKey: table.StringValue("account-1-1")},
		{attributes.PartitionKey: table.StringValue("account-1"), attributes.SortKey: table.StringValue("account-1-0")},
		{attributes.PartitionKey: table.StringValue("account-1"), attributes.SortKey: table.StringValue("-")},
		{attributes.PartitionKey: table.StringValue("account/1"), attributes.SortKey: &types.AttributeValueMemberN{Value: "-5"}},
		{attributes.PartitionKey: table.StringValue("/1"), attributes.SortKey: &types.AttributeValueMemberN{Value: "5"}},
		{attributes.PartitionKey: table.StringValue("account/1"), attributes.SortKey: &types.AttributeValueMemberN{Value: "1e3"}},
	} {
		_, _, ok := w.EventOf(key)
		assert.False(w, ok, "%v", key)
	}
}

func survivesALostReply(w world) {
	proxy := dynamotest.NewProxy(w.T, testdb.Client(w.T))
	w.Engine = create(w.T, proxy.Client(), w.kind)
	id := account("1")
	for expected := range uint64(3) {
		fault := proxy.Inject(dynamotest.LoseReply(), dynamotest.On("PutItem", "TransactWriteItems"), dynamotest.Times(1))
		receipt, err := w.Append(context.WithoutCancel(w.Context()), layoutcheck.Commit(id, expected, 1))
		require.NoError(w, err)
		assert.Equal(w, expected+1, receipt.Version)
		fault.Remove()
	}
	var numbers []uint64
	for r, err := range w.AllEvents(w.Context(), id) {
		require.NoError(w, err)
		numbers = append(numbers, r.Number)
	}
	assert.Equal(w, []uint64{1, 2, 3}, numbers)
}
