package protobuf_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/protobuf/internal/bankpb"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func setup(t *testing.T) *journal.Journal {
	t.Helper()
	return testjournal.New(t, testdb.Client(t), journal.Config{Layout: journal.Classic, Shards: 2})
}

func TestAggregatesOfMessagesAreStoredWithAndWithoutSnapshots(t *testing.T) {
	t.Parallel()
	j := setup(t)
	for name, policy := range map[string]repository.SnapshotPolicy{"every": repository.Every(1), "never": repository.Never} {
		t.Run(name, func(t *testing.T) {
			accounts := testjournal.Repository(t, j, Accounts, repository.Config{Snapshots: policy})
			for range 3 {
				testjournal.Execute(t, accounts, name, func(a Account) (aggregate.Events[Account], error) {
					// The decision may change it, since the message is its own copy.
					delete(a.GetBalances(), "EUR")
					return aggregate.Events[Account]{deposited(40, "EUR"), Viewed{"Ada"}}, nil
				})
			}
			_, err := accounts.Execute(t.Context(), name, withdraw(121, "EUR"))
			require.ErrorIs(t, err, errInsufficientFunds)
			a := testjournal.Execute(t, accounts, name, withdraw(100, "EUR"))
			assert.EqualValues(t, 7, a.Version)
			loaded, err := accounts.Load(t.Context(), name)
			require.NoError(t, err)
			assert.EqualValues(t, 20, loaded.State.GetBalances()["EUR"])
			assert.EqualValues(t, 40, loaded.State.GetLastDeposit().GetAmount())
		})
	}
}

func TestAMessageWithoutContentIsStored(t *testing.T) {
	t.Parallel()
	j := setup(t)
	ledgers := testjournal.Repository(t, j, Ledgers, repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
	ledger, err := ledgers.NewAggregate("7")
	require.NoError(t, err)
	_, err = ledgers.Save(t.Context(), ledger, aggregate.Events[bankpb.Ledger]{&bankpb.Closed{}})
	require.NoError(t, err)

	ledger, err = ledgers.Load(t.Context(), "7")
	require.NoError(t, err)
	assert.Equal(t, bankpb.Ledger{Closed: true}, ledger.State)
}

func TestAStateWithoutContentMakesNoTrouble(t *testing.T) {
	t.Parallel()
	accounts := testjournal.Repository(t, setup(t), Accounts, repository.Config{Snapshots: repository.Every(1)})
	for range 2 {
		testjournal.Execute(t, accounts, "42", func(Account) (aggregate.Events[Account], error) {
			return aggregate.Events[Account]{Viewed{"Ada"}}, nil
		})
	}
	a, err := accounts.Load(t.Context(), "42")
	require.NoError(t, err)
	assert.EqualValues(t, 2, a.Version)
	assert.Empty(t, a.State.GetBalances())
}

func TestOnlyThisPackageDependsOnTheProtobufModule(t *testing.T) {
	t.Parallel()
	root := "github.com/millrace-dev/millrace/"
	args := []string{"list", "-deps"}
	for _, name := range []string{"aggregate", "aggregate/aggregatetest", "journal", "repository", "publisher", "subscriber", "projection"} {
		args = append(args, root+name)
	}
	deps, err := exec.CommandContext(t.Context(), "go", args...).Output()
	require.NoError(t, err)
	require.Contains(t, string(deps), root+"journal")
	for dep := range strings.Lines(string(deps)) {
		assert.False(t, strings.HasPrefix(dep, "google.golang.org/protobuf/"), dep)
	}
}
